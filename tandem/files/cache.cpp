#include "tandem/files/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

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
  if (const std::string own = environment("TANDEM_CACHE"); !own.empty()) return own;
  // The XDG specification says that a relative path is to be ignored.
  if (const fs::path base = environment("XDG_CACHE_HOME"); base.is_absolute()) return base / "tandem";
  const std::string home = environment("HOME");
  check(!home.empty(), "[cache] expected a home directory for the cache: set TANDEM_CACHE to a folder");
  return fs::path(home) / ".cache" / "tandem";
}

FolderLock::FolderLock(const fs::path& folder)
    : file_(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  const int code = errno;
  check(file_ >= 0, "[cache] cannot write to {}: {}", folder.string(), std::generic_category().message(code));
  while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderLock::~FolderLock() {
  ::close(file_);
}

ScratchFolder::ScratchFolder() {
  std::error_code ignored;
  std::string pattern = (fs::temp_directory_path(ignored) / "tandem-XXXXXX").string();
  const bool made = ::mkdtemp(pattern.data()) != nullptr;
  const int code = errno;
  check(made, "[cache] cannot make a temporary folder {}: {}", pattern,
        std::generic_category().message(code));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace tandem
