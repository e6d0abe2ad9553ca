#include "tandem/files/cache.h"

#include <cstdlib>
#include <string>

#include "tandem/core/check.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

fs::path cache_directory() {
  if (const std::string folder = environment("TANDEM_CACHE"); !folder.empty()) return folder;
  // The XDG specification requires relative paths to be ignored.
  if (const fs::path base = environment("XDG_CACHE_HOME"); base.is_absolute()) return base / "tandem";
  const std::string home = environment("HOME");
  check(!home.empty(), "[cache] expected a cache folder in TANDEM_CACHE, XDG_CACHE_HOME or HOME, got none");
  return fs::path(home) / ".cache" / "tandem";
}

}  // namespace tandem
