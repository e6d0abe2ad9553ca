// The process that a KernelProcess starts: it enters the sandbox, loads the plugin and answers requests.
#pragma once

#include <optional>

namespace tandem {

// Runs the commands `plugin-host` and `confined`, which are not for users, and returns the exit status; none
// for any other command. First thing in main() of a program that a KernelProcess or a sandboxed compiler is
// to run in.
//   plugin-host PAGE INPUTS OUTPUTS REQUESTS REPLIES LIBRARY [SANDBOX…]   the descriptors, then the file
//   confined [SANDBOX…] -- PROGRAM [ARGUMENT…]                            executes a program in the sandbox
std::optional<int> run_plugin_if_asked(int argc, char** argv);

}  // namespace tandem
