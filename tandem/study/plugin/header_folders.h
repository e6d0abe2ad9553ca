// Where the headers of Tandem are, for plugins that use them.
#pragma once

#include <filesystem>
#include <vector>

namespace tandem {

// PREFIX/include of the program PREFIX/bin/tandem, or the folders it was built from; empty when it has
// neither.
std::vector<std::filesystem::path> header_folders();

}  // namespace tandem
