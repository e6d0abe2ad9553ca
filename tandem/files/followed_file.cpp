// A file is the same one if the bytes before the offset are: inode numbers change on network file systems,
// and a resumed run replaces its logs by ones that begin with the same lines.
#include "tandem/files/followed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "tandem/process/descriptor.h"

namespace tandem {
namespace {

constexpr std::size_t checked_bytes = 256;

// The number of bytes read; fewer than wanted only at the end of the file or after an error.
std::size_t read_at(int file, std::int64_t offset, char* to, std::size_t bytes) {
  std::size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got =
        ::pread(file, to + filled, bytes - filled, offset + static_cast<std::int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

}  // namespace

FollowedFile::Poll FollowedFile::poll(const std::function<void()>& on_restart,
                                      const std::function<void(std::string_view)>& on_line,
                                      std::int64_t max_bytes) {
  struct stat facts {};
  const auto current = [&] { return Facts{facts.st_size, facts.st_mtim, facts.st_ino}; };
  if (::stat(path_.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  if (current() == seen_) return {.exists = true};
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  Poll result{.exists = true};
  if (!continues(file.get())) {  // also if it became shorter
    restart();
    on_restart();
    result.changed = true;
  }
  std::array<char, 1 << 16> chunk;
  for (std::int64_t taken = 0;;) {
    if (taken >= max_bytes) {
      result.more = true;
      return result;
    }
    const std::size_t got = read_at(file.get(), offset_, chunk.data(), chunk.size());
    if (got == 0) break;
    const std::string_view bytes(chunk.data(), got);
    offset_ += static_cast<std::int64_t>(got);
    taken += static_cast<std::int64_t>(got);
    before_ += bytes.substr(got - std::min(got, checked_bytes));
    before_.erase(0, before_.size() - std::min(before_.size(), checked_bytes));
    result.changed |= take(bytes, on_line);
  }
  if (offset_ >= facts.st_size) seen_ = current();  // else it could not be read to its end
  return result;
}

bool FollowedFile::continues(int file) const {
  std::array<char, checked_bytes> now;
  const std::size_t got =
      read_at(file, offset_ - static_cast<std::int64_t>(before_.size()), now.data(), before_.size());
  return std::string_view(now.data(), got) == before_;
}

void FollowedFile::restart() {
  offset_ = 0;
  before_.clear();
  line_.clear();
  is_dropping_ = false;
}

// Whether a line was delivered.
bool FollowedFile::take(std::string_view bytes, const std::function<void(std::string_view)>& on_line) {
  bool delivered = false;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const bool is_complete = end != std::string_view::npos;
    std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(is_complete ? end + 1 : bytes.size());
    is_dropping_ = is_dropping_ || line_.size() + part.size() > max_line;
    if (is_dropping_ || !is_complete || !line_.empty()) {
      if (is_dropping_)
        line_.clear();
      else
        line_ += part;
      part = line_;
    }
    if (!is_complete) continue;
    if (!is_dropping_) {
      if (part.ends_with('\r')) part.remove_suffix(1);
      on_line(part);
      delivered = true;
    }
    line_.clear();
    is_dropping_ = false;
  }
  return delivered;
}

}  // namespace tandem
