// The text of `tandem --version`.
#pragma once

#include <string>

namespace tandem {

// Version and commit on the first line, compiler and build options on the second.
std::string version_text();

}  // namespace tandem
