#include "tandem/files/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/files/packed_path.h"

namespace tandem {
namespace {

struct OpenFile {
  int descriptor;

  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

}  // namespace

std::string read_file(const char* op, const std::filesystem::path& path, std::uint64_t max_bytes) {
  const auto require = [&](bool ok) {
    const int code = errno;
    check(ok, "[{}] {}: cannot be read: {}", op, path.string(), std::generic_category().message(code));
  };
  const auto check_size = [&](std::uint64_t size) {
    check(size <= max_bytes, "[{}] {}: expected at most {} bytes, got {}", op, path.string(), max_bytes,
          size);
    return size;
  };
  const OpenFile file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  check(file.descriptor >= 0 || errno != ENOENT, "[{}] {}: no such file", op, path.string());
  if (file.descriptor < 0 && errno == ENOTDIR) {
    const std::optional<PackedFile> packed = open_packed_file(op, path);
    if (packed) return std::string(packed->bytes.substr(0, check_size(packed->bytes.size())));
    errno = ENOTDIR;
  }
  require(file.descriptor >= 0);
  struct stat facts {};
  require(::fstat(file.descriptor, &facts) == 0);
  check(S_ISREG(facts.st_mode), "[{}] {}: expected a file, got a {}", op, path.string(),
        S_ISDIR(facts.st_mode) ? "folder" : "device or pipe");
  std::string bytes(check_size(static_cast<std::uint64_t>(facts.st_size)), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file.descriptor, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0);
    check(got > 0, "[{}] {}: the file became shorter while it was read", op, path.string());
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace tandem
