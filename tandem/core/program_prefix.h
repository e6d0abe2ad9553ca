// Where the running program is installed.
#pragma once

#include <filesystem>

namespace tandem {

// The folder above that of the program: PREFIX of PREFIX/bin/tandem. What is installed with the program is
// found from there, so that the prefix can be moved.
std::filesystem::path program_prefix();

}  // namespace tandem
