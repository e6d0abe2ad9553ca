#include "tandem/files/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

std::filesystem::path lock_path(const std::filesystem::path& folder) {
  return folder / ".lock";
}

int open_lock(const std::filesystem::path& folder) {
  const int file = ::open(lock_path(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const int code = errno;
  check(file >= 0, "[folder_lock] cannot write to {}: {}", folder.string(),
        std::generic_category().message(code));
  return file;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("?");
}

// A failure is ignored: the text is only for messages.
void write_holder(int file) {
  const std::string text = fmt::format("{} {}\n", ::getpid(), host_name());
  if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, text.data(), text.size(), 0);
}

// Of the machine, in seconds since 1970; 0 if it is not known.
double boot_time() {
  std::ifstream file("/proc/stat");
  double seconds = 0;
  for (std::string name, rest; file >> name; std::getline(file, rest))
    if (name == "btime") return file >> seconds ? seconds : 0;
  return 0;
}

// Of a process, in seconds since 1970; nullopt if there is none, or only what is left of one that ended.
std::optional<double> start_time(long process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  static const double booted_at = boot_time();
  return booted_at + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(open_lock(folder)) {
  while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
  }
  write_holder(file_);
}

std::optional<FolderLock> FolderLock::try_lock(const std::filesystem::path& folder) {
  FolderLock lock;
  lock.file_ = open_lock(folder);
  int failed = 0;
  while ((failed = ::flock(lock.file_, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) {
  }
  if (failed != 0 && errno == EWOULDBLOCK) return std::nullopt;
  write_holder(lock.file_);
  return lock;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

std::optional<LockHolder> last_lock_holder(const std::filesystem::path& folder) {
  LockHolder holder;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(lock_path(folder), ignored)) return std::nullopt;
  std::array<char, 300> text{};  // a number and a name of at most 255 characters
  std::ifstream file(lock_path(folder));
  file.read(text.data(), text.size() - 1);
  if (!(std::istringstream(text.data()) >> holder.process >> holder.host) || holder.process <= 0)
    return std::nullopt;
  holder.is_here = holder.host == host_name();
  return holder;
}

bool is_alive(const LockHolder& holder, const std::filesystem::path& folder) {
  const std::optional<double> started = start_time(holder.process);
  struct stat facts {};
  if (!started || ::stat(lock_path(folder).c_str(), &facts) != 0) return false;
  constexpr double clock_error_s = 60;  // file servers have clocks of their own
  return *started <= static_cast<double>(facts.st_mtime) + clock_error_s;
}

std::string last_locked_by(const std::filesystem::path& folder) {
  const std::optional<LockHolder> holder = last_lock_holder(folder);
  if (!holder) return "another process";
  return holder->is_here ? fmt::format("process {}", holder->process)
                         : fmt::format("process {} on {}", holder->process, holder->host);
}

}  // namespace tandem
