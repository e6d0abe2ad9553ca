// POSIX calls, because the standard library knows neither fsync nor O_EXCL.
#include "tandem/report/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int number() const { return number_; }
  bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

// The file until it is renamed into its place; removed when that does not happen.
struct Unfinished {
  fs::path path;

  ~Unfinished() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The name does not grow with the file's own, which may be as long as names can be.
int create_beside(const fs::path& target, fs::path& beside) {
  for (int attempt = 0;; ++attempt) {
    beside = target.parent_path() / fmt::format(".tandem-{}-{}.tmp", ::getpid(), attempt);
    const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

// A rename is on the disk when its directory is; a file system that cannot do that has done what it can.
void sync_directory(const fs::path& directory) {
  const FileDescriptor handle(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.number() >= 0) ::fsync(handle.number());
}

}  // namespace

void write_text_file(const fs::path& path, std::string_view text) {
  const auto need = [&](bool fine) {
    const int code = errno;
    check(fine, "[write] cannot write {}: {}", path.string(), std::generic_category().message(code));
  };
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && !S_ISREG(existing.st_mode)) {
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    need(file.number() >= 0);
    need(write_all(file.number(), text));
    need(file.close());
    return;
  }
  // A rename would replace a read-only file unasked.
  if (exists) need(::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0);

  std::error_code ignored;
  const fs::path resolved = exists ? fs::canonical(path, ignored) : path;
  const fs::path target = resolved.empty() ? path : resolved;
  fs::path beside;
  FileDescriptor file(create_beside(target, beside));
  need(file.number() >= 0);
  Unfinished unfinished{beside};
  if (exists) need(::fchmod(file.number(), existing.st_mode & 07777) == 0);
  need(write_all(file.number(), text));
  need(::fsync(file.number()) == 0);
  need(file.close());
  need(::rename(beside.c_str(), target.c_str()) == 0);
  unfinished.path.clear();
  sync_directory(target.parent_path());
}

}  // namespace tandem
