#include "apps/tandem/version.h"

#include <fmt/format.h>

#include "tandem/core/build_info.h"

namespace tandem {

std::string version_text() {
  const BuildInfo& info = build_info();
  return fmt::format("tandem {} (commit {})\nBuilt with {}: {}", info.version, info.commit, TANDEM_COMPILER,
                     TANDEM_BUILD_OPTIONS);
}

}  // namespace tandem
