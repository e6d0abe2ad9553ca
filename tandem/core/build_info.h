// What this build is: the version and the commit it was made from.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

/// The version, the commit and the public headers of this build.
struct BuildInfo {
  std::string_view version;  ///< "0.1.0"
  std::string_view commit;   ///< "6cefd08d1f", "6cefd08d1f+changes", or "unknown" outside a git checkout
  std::string_view headers;  ///< a hash of the public headers
};

/// Only the file that defines this is compiled again after a commit.
const BuildInfo& build_info();

}  // namespace tandem
