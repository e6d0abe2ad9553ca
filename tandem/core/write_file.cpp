// POSIX calls, because the standard library knows neither fsync nor O_EXCL.
#include "tandem/core/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <string>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

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

// Turns the errno of a call that failed into the Error.
struct Need {
  const char* op;
  const fs::path& path;

  void operator()(bool fine) const {
    const int code = errno;
    check(fine, "[{}] cannot write {}: {}", op, path.string(), std::generic_category().message(code));
  }
};

struct Target {
  fs::path path;  // after all links
  bool exists = false;
  bool in_place = false;  // a device or pipe, which a rename would replace
  mode_t mode = 0;
};

Target find_target(const Need& need) {
  check(!need.path.empty(), "[{}] expected a file name to write to, got none", need.op);
  Target target{.path = need.path};
  struct stat facts {};
  target.exists = ::stat(need.path.c_str(), &facts) == 0;
  need(target.exists || errno == ENOENT);
  if (target.exists) {
    errno = EISDIR;
    need(!S_ISDIR(facts.st_mode));
    // A rename would replace a read-only file unasked.
    need(::faccessat(AT_FDCWD, need.path.c_str(), W_OK, AT_EACCESS) == 0);
    target.in_place = !S_ISREG(facts.st_mode);
    target.mode = facts.st_mode & 07777;
  }
  // One link after the other, because the last may point to a file that is yet to be made.
  std::error_code error;
  while (!target.in_place && fs::is_symlink(target.path, error))
    target.path = target.path.parent_path() / fs::read_symlink(target.path, error);
  return target;
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
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

std::size_t total_size(const std::vector<std::span<const std::byte>>& pieces) {
  std::size_t bytes = 0;
  for (const std::span<const std::byte> piece : pieces) bytes += piece.size();
  return bytes;
}

}  // namespace

std::string FileParts::to_string() const {
  std::string text;
  text.reserve(head_size + total_size(body));
  if (make_head) text += make_head();
  expect(text.size() == head_size);
  for (const std::span<const std::byte> piece : body)
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return text;
}

struct PendingFile::State {
  State(const char* op_name, const fs::path& wanted, FileParts given)
      : op(op_name), path(wanted), target(find_target(need())), parts(std::move(given)) {
    if (target.in_place) {
      file = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      need()(file.number() >= 0);
    } else {
      fs::path beside;
      file = FileDescriptor(create_beside(target.path, beside));
      need()(file.number() >= 0);
      unfinished.path = beside;
      if (target.exists) need()(::fchmod(file.number(), target.mode) == 0);
    }
    constexpr std::size_t large = std::size_t{1} << 20;
    if (parts.make_head && total_size(parts.body) >= large) policy = std::launch::async;
    written = std::async(policy, [this] { write(); });
  }

  Need need() const { return {op, path}; }

  void write() {
    const int number = file.number();
    std::future<std::string> head = std::async(policy, [this] { return head_bytes(); });
    if (target.in_place) {  // from the first byte to the last
      const std::string bytes = head.get();
      need()(write_all(number, std::as_bytes(std::span(bytes))));
      write_body();
    } else {
      need()(::lseek(number, static_cast<off_t>(parts.head_size), SEEK_SET) >= 0);
      write_body();
      // The disk is at work while the head is made.
      if (policy == std::launch::async) need()(::fdatasync(number) == 0);
      const std::string bytes = head.get();
      need()(::lseek(number, 0, SEEK_SET) == 0);
      need()(write_all(number, std::as_bytes(std::span(bytes))));
      need()(::fsync(number) == 0);
    }
    need()(file.close());
  }

  std::string head_bytes() const {
    std::string bytes = parts.make_head ? parts.make_head() : std::string();
    expect(bytes.size() == parts.head_size);
    return bytes;
  }
  void write_body() const {
    for (const std::span<const std::byte> piece : parts.body) need()(write_all(file.number(), piece));
  }

  const char* op;
  fs::path path;
  Target target;
  FileParts parts;
  Unfinished unfinished;
  FileDescriptor file;
  std::launch policy = std::launch::deferred;  // a small file is written by finish()
  std::future<void> written;                   // the last, because it waits before the others go
};

PendingFile::PendingFile(const char* op, const fs::path& path, FileParts parts)
    : state_(std::make_unique<State>(op, path, std::move(parts))) {}
PendingFile::~PendingFile() = default;
PendingFile::PendingFile(PendingFile&&) noexcept = default;
PendingFile& PendingFile::operator=(PendingFile&&) noexcept = default;

void PendingFile::finish() {
  expect(state_ != nullptr);
  const std::unique_ptr<State> state = std::move(state_);
  state->written.get();
  if (state->target.in_place) return;
  const fs::path& target = state->target.path;
  state->need()(::rename(state->unfinished.path.c_str(), target.c_str()) == 0);
  state->unfinished.path.clear();
  sync_directory(target.parent_path());
}

void write_file(const char* op, const fs::path& path, std::span<const std::byte> bytes) {
  PendingFile(op, path, {.body = {bytes}}).finish();
}

void write_file(const char* op, const fs::path& path, std::string_view text) {
  write_file(op, path, std::as_bytes(std::span(text)));
}

void append_file(const char* op, const fs::path& path, std::string_view text) {
  const Need need{op, path};
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  need(file.number() >= 0);
  need(write_all(file.number(), std::as_bytes(std::span(text))));
  need(file.close());
}

void check_writable(const char* op, const fs::path& path) {
  const Need need{op, path};
  const Target target = find_target(need);
  if (target.in_place) return;
  fs::path beside;
  const FileDescriptor file(create_beside(target.path, beside));
  need(file.number() >= 0);
  const Unfinished unfinished{beside};
}

}  // namespace tandem
