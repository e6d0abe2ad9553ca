#include "tandem/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "tandem/core/check.h"

namespace tandem {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : file_(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  const int code = errno;
  check(file_ >= 0, "[folder_lock] cannot write to {}: {}", folder.string(),
        std::generic_category().message(code));
  while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderLock::~FolderLock() {
  ::close(file_);
}

}  // namespace tandem
