// Uses POSIX calls because the standard library has neither fsync nor O_EXCL.
#include "tandem/core/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <string>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/streamed_file.h"

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

// Removes the temporary file unless `path` was cleared after the rename.
struct TemporaryFile {
  fs::path path;

  ~TemporaryFile() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

// Throws the Error for the current errno when a system call failed.
struct ErrnoCheck {
  const char* op;
  const fs::path& path;

  void operator()(bool success) const {
    const int code = errno;
    check(success, "[{}] cannot write {}: {}", op, path.string(), std::generic_category().message(code));
  }
};

struct Target {
  fs::path path;  // with symbolic links resolved
  bool exists = false;
  bool in_place = false;  // a device or pipe, which a rename would replace instead of writing to
  mode_t mode = 0;
};

Target find_target(const ErrnoCheck& check_call) {
  check(!check_call.path.empty(), "[{}] expected a file name to write to, got none", check_call.op);
  Target target{.path = check_call.path};
  struct stat status {};
  target.exists = ::stat(check_call.path.c_str(), &status) == 0;
  check_call(target.exists || errno == ENOENT);
  if (target.exists) {
    errno = EISDIR;
    check_call(!S_ISDIR(status.st_mode));
    // A rename would replace a read-only file without an error.
    check_call(::faccessat(AT_FDCWD, check_call.path.c_str(), W_OK, AT_EACCESS) == 0);
    target.in_place = !S_ISREG(status.st_mode);
    target.mode = status.st_mode & 07777;
  }
  // Links are followed one by one, because the last may point to a file that does not exist yet.
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

// The name does not contain the target's name, which may already have the maximum length.
int create_temporary(const fs::path& target, fs::path& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary = target.parent_path() / fmt::format(".tandem-{}-{}.tmp", ::getpid(), attempt);
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

// A file of that folder without a name; -1 where there are none.
int create_unnamed(const fs::path& target) {
  const fs::path folder = target.parent_path();
  return ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

// Gives an unnamed file a temporary name.
bool name_temporary(int file, const fs::path& target, fs::path& temporary) {
  const std::string unnamed = fmt::format("/proc/self/fd/{}", file);
  for (int attempt = 0;; ++attempt) {
    temporary = target.parent_path() / fmt::format(".tandem-{}-{}.tmp", ::getpid(), attempt);
    if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
    if (errno != EEXIST) return false;
  }
}

bool sync(int file) {
  int failed = 0;
  while ((failed = ::fsync(file)) != 0 && errno == EINTR) {
  }
  return failed == 0;
}

// Without a thread to run it, the function is called by get().
template <class Function>
auto start(std::launch policy, const Function& function) {
  try {
    return std::async(policy, function);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, function);
  }
}

// A second name for the file that is about to be replaced. On file systems without hard links there is none.
void keep_previous(const fs::path& target, const fs::path& previous) {
  if (previous.empty() || ::access(target.c_str(), F_OK) != 0) return;
  ::unlink(previous.c_str());
  (void)::link(target.c_str(), previous.c_str());
}

std::size_t total_size(const std::vector<std::span<const std::byte>>& pieces) {
  std::size_t bytes = 0;
  for (const std::span<const std::byte> piece : pieces) bytes += piece.size();
  return bytes;
}

}  // namespace

std::string FileParts::to_string() const {
  std::string text;
  text.reserve(header_size + total_size(body));
  if (make_header) text += make_header();
  expect(text.size() == header_size);
  for (const std::span<const std::byte> piece : body)
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return text;
}

struct PendingFile::State {
  State(const char* op_name, const fs::path& target_path, FileParts file_parts)
      : op(op_name), path(target_path), target(find_target({op, path})), parts(std::move(file_parts)) {
    if (target.in_place) {
      file = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      check_call(file.number() >= 0);
    } else {
      fs::path temporary;
      file = FileDescriptor(create_temporary(target.path, temporary));
      check_call(file.number() >= 0);
      temporary_file.path = temporary;
      if (target.exists) check_call(::fchmod(file.number(), target.mode) == 0);
    }
    constexpr std::size_t large = std::size_t{1} << 20;
    if (parts.make_header && total_size(parts.body) >= large) policy = std::launch::async;
    written = start(policy, [this] { write(); });
  }

  void check_call(bool success) const { ErrnoCheck{op, path}(success); }

  void write() {
    const int number = file.number();
    std::future<std::string> header = start(policy, [this] { return header_bytes(); });
    if (target.in_place) {  // a pipe cannot seek, so the header comes first
      const std::string bytes = header.get();
      check_call(write_all(number, std::as_bytes(std::span(bytes))));
      write_body();
    } else {
      check_call(::lseek(number, static_cast<off_t>(parts.header_size), SEEK_SET) >= 0);
      write_body();
      // Start writing the body to the disk while the header is computed.
      if (policy == std::launch::async) check_call(sync(number));
      const std::string bytes = header.get();
      check_call(::lseek(number, 0, SEEK_SET) == 0);
      check_call(write_all(number, std::as_bytes(std::span(bytes))));
      check_call(sync(number));
    }
    check_call(file.close());
  }

  std::string header_bytes() const {
    std::string bytes = parts.make_header ? parts.make_header() : std::string();
    expect(bytes.size() == parts.header_size);
    return bytes;
  }
  void write_body() const {
    for (const std::span<const std::byte> piece : parts.body) check_call(write_all(file.number(), piece));
  }

  const char* op;
  fs::path path;
  Target target;
  FileParts parts;
  TemporaryFile temporary_file;
  FileDescriptor file;
  std::launch policy = std::launch::deferred;  // a small file is written by finish()
  std::future<void> written;  // last member: its destructor waits before the others are destroyed
};

PendingFile::PendingFile(const char* op, const fs::path& path, FileParts parts)
    : state_(std::make_unique<State>(op, path, std::move(parts))) {}
PendingFile::~PendingFile() = default;
PendingFile::PendingFile(PendingFile&&) noexcept = default;
PendingFile& PendingFile::operator=(PendingFile&&) noexcept = default;

void PendingFile::finish(const fs::path& previous) {
  expect(state_ != nullptr);
  const std::unique_ptr<State> state = std::move(state_);
  state->written.get();
  if (state->target.in_place) return;
  const fs::path& target = state->target.path;
  keep_previous(target, previous);
  state->check_call(::rename(state->temporary_file.path.c_str(), target.c_str()) == 0);
  state->temporary_file.path.clear();
  sync_path(target.parent_path());  // a rename is durable once its folder is synced
}

struct StreamedFile::State {
  State(const char* op_name, const fs::path& target_path)
      : op(op_name), path(target_path), target(find_target({op, path})) {
    check(!target.in_place, "[{}] {}: expected a file to write, got a device or pipe", op, path.string());
    file = FileDescriptor(create_unnamed(target.path));
    if (file.number() < 0) {
      fs::path temporary;
      file = FileDescriptor(create_temporary(target.path, temporary));
      check_call(file.number() >= 0);
      temporary_file.path = temporary;
    }
    if (target.exists) check_call(::fchmod(file.number(), target.mode) == 0);
  }

  void check_call(bool success) const { ErrnoCheck{op, path}(success); }

  const char* op;
  fs::path path;
  Target target;
  TemporaryFile temporary_file;
  FileDescriptor file;
};

StreamedFile::StreamedFile(const char* op, const fs::path& path)
    : state_(std::make_unique<State>(op, path)) {}
StreamedFile::~StreamedFile() = default;
StreamedFile::StreamedFile(StreamedFile&&) noexcept = default;
StreamedFile& StreamedFile::operator=(StreamedFile&&) noexcept = default;

void StreamedFile::append(std::string_view bytes) {
  expect(state_ != nullptr);
  state_->check_call(write_all(state_->file.number(), std::as_bytes(std::span(bytes))));
}

void StreamedFile::replace_begin(std::string_view bytes) {
  expect(state_ != nullptr);
  state_->check_call(::lseek(state_->file.number(), 0, SEEK_SET) == 0);
  append(bytes);
  state_->check_call(::lseek(state_->file.number(), 0, SEEK_END) >= 0);
}

void StreamedFile::finish() {
  expect(state_ != nullptr);
  const std::unique_ptr<State> state = std::move(state_);
  fs::path& temporary = state->temporary_file.path;
  state->check_call(sync(state->file.number()));
  if (temporary.empty())
    state->check_call(name_temporary(state->file.number(), state->target.path, temporary));
  state->check_call(state->file.close());
  state->check_call(::rename(temporary.c_str(), state->target.path.c_str()) == 0);
  temporary.clear();
  sync_path(state->target.path.parent_path());
}

void write_file(const char* op, const fs::path& path, std::span<const std::byte> bytes) {
  PendingFile(op, path, {.body = {bytes}}).finish();
}

void write_file(const char* op, const fs::path& path, std::string_view text) {
  write_file(op, path, std::as_bytes(std::span(text)));
}

void append_file(const char* op, const fs::path& path, std::string_view text) {
  const ErrnoCheck check_call{op, path};
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  check_call(file.number() >= 0);
  check_call(write_all(file.number(), std::as_bytes(std::span(text))));
  check_call(file.close());
}

void sync_path(const fs::path& path) noexcept {
  const FileDescriptor file(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.number() >= 0) sync(file.number());
}

void check_writable(const char* op, const fs::path& path) {
  const ErrnoCheck check_call{op, path};
  const Target target = find_target(check_call);
  if (target.in_place) return;
  fs::path temporary;
  const FileDescriptor file(create_temporary(target.path, temporary));
  check_call(file.number() >= 0);
  const TemporaryFile cleanup{temporary};
}

}  // namespace tandem
