// Messages on standard error that can never fail: a message that cannot be written must not end a run.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "tandem/text/utf8.h"

namespace tandem {

// Writes the text to standard error. A full disk, a closed descriptor and a pipe without a reader are
// ignored; SIGPIPE is not raised. Safe to call from any thread.
void write_message(std::string_view text) noexcept;

// Without control characters, which names from files may contain.
template <class... Args>
void print_message(fmt::format_string<Args...> text, Args&&... args) noexcept {
  try {
    write_message(without_controls(fmt::format(text, std::forward<Args>(args)...)));
  } catch (...) {  // out of memory
  }
}

// Makes standard error /dev/null, for this process and those it starts: messages and progress come from many
// places, workers included. write_message() still writes text that begins with "Warning:" to the original
// one.
void hide_messages() noexcept;
// Ends hide_messages(), so that an error is shown.
void restore_messages() noexcept;

// Opens /dev/null for each of standard input, output and error that is closed, so that no other file gets
// its number and is written to by accident. Writing to an output that was closed still fails.
void open_closed_streams() noexcept;

}  // namespace tandem
