// The process that a DecodeProcess starts: it enters the sandbox and decodes images until its socket is
// closed.
#pragma once

#include <optional>

namespace tandem {

// Answers what comes from the socket `fd` until its end, or until something else than a request comes.
void answer_decode_requests(int fd);

// Runs the command `decode-images FD [SANDBOX…]`, which is not for users, and returns the exit status; none
// for any other command. First thing in main() of a program that a DecodeProcess is to run in.
std::optional<int> run_decoder_if_asked(int argc, char** argv);

}  // namespace tandem
