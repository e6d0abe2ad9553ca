#include "tandem/image/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "tandem/core/check.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Returns 0 or the errno of the first call that failed. Closes the descriptor.
int write_all(int descriptor, std::span<const uint8_t> bytes, bool sync) {
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written >= 0)
      bytes = bytes.subspan(size_t(written));
    else if (errno != EINTR)
      error = errno;
  }
  if (error == 0 && sync && fsync(descriptor) != 0) error = errno;
  if (close(descriptor) != 0 && error == 0) error = errno;
  return error;
}

// Makes the rename itself last; a file system that cannot sync a folder is no reason to fail.
void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

void write_file(std::string_view op, const fs::path& path, std::span<const uint8_t> bytes) {
  const std::string name = path.string();
  check(!name.empty(), "[{}] expected a file name to write to, got none", op);
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  check(!fs::is_directory(status), "[{}] {}: expected a file name to write to, got a folder", op, name);

  if (fs::exists(status) &&
      !fs::is_regular_file(status)) {  // renaming over /dev/stdout would replace the device
    const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const int error = descriptor < 0 ? errno : write_all(descriptor, bytes, false);
    check(error == 0, "[{}] {}: cannot be written: {}", op, name, std::strerror(error));
    return;
  }

  const fs::path target = fs::exists(status) ? fs::canonical(path, ignored) : path;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  check(fs::is_directory(folder, ignored), "[{}] {}: the folder {} does not exist", op, name,
        folder.string());

  // Open without mkstemp, whose files only their owner may read. The name is short so that a long target
  // still fits.
  fs::path beside;
  int descriptor = -1, open_error = EEXIST;
  for (int attempt = 0; descriptor < 0 && open_error == EEXIST && attempt < 1000; ++attempt) {
    beside = folder / fmt::format(".tandem-{}-{}.part", getpid(), attempt);
    descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    open_error = descriptor < 0 ? errno : 0;
  }
  check(descriptor >= 0, "[{}] {}: cannot be written: {}", op, name, std::strerror(open_error));

  int error = write_all(descriptor, bytes, true);
  if (error == 0 && std::rename(beside.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) unlink(beside.c_str());
  check(error == 0, "[{}] {}: cannot be written: {}", op, name, std::strerror(error));
  sync_folder(folder);
}

}  // namespace tandem
