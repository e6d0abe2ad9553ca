// The folder of downloaded data sets and weights.
#pragma once

#include <filesystem>

namespace tandem {

/// $TANDEM_CACHE, else $XDG_CACHE_HOME/tandem, else ~/.cache/tandem. The folder may not exist yet. Throws
/// Error if none of these variables and $HOME is set.
std::filesystem::path cache_directory();

}  // namespace tandem
