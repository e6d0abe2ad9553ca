#include "tests/faults/file_log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tandem_faults {
namespace {

int log_file = -1;
const char* folder = "";
std::uint32_t locked = 0;  // no mutex: the calls may come before and after the objects of C++ exist

// While it lives, no other thread changes files.
struct Lock {
  Lock() {
    if (log_file < 0) return;
    while (__atomic_exchange_n(&locked, 1u, __ATOMIC_ACQUIRE) != 0) sched_yield();
  }
  ~Lock() {
    if (log_file >= 0) __atomic_store_n(&locked, 0u, __ATOMIC_RELEASE);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

bool is_inside(const char* path) {
  return log_file >= 0 && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

struct stat facts_of(int fd) {
  struct stat facts {};
  if (syscall(SYS_fstat, fd, &facts) != 0) facts.st_ino = 0;
  return facts;
}

__attribute__((format(printf, 3, 4))) void record(const void* data, std::size_t size, const char* format,
                                                  ...) {
  const int code = errno;
  char line[2 * 4096 + 64];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  iovec parts[2] = {{line, static_cast<std::size_t>(length)}, {const_cast<void*>(data), size}};
  syscall(SYS_writev, log_file, parts, 2);
  errno = code;
}

bool exists(const char* path) {
  return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

void record_new(int fd, const char* path) {
  record(nullptr, 0, "C %lu %s\n", static_cast<unsigned long>(facts_of(fd).st_ino), path);
}

}  // namespace

void open_file_log() {
  const char* const path = std::getenv("TANDEM_FAULT_LOG");
  const char* const inside = std::getenv("TANDEM_FAULT_FOLDER");
  if (path == nullptr || inside == nullptr) return;
  folder = inside;
  log_file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
}

int log_open(int at, const char* path, int flags, mode_t mode) {
  const Lock lock;
  const bool creates = (flags & O_CREAT) != 0 && is_inside(path) && !exists(path);
  const int fd = static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
  if (fd >= 0 && creates) record_new(fd, path);
  if (fd >= 0 && !creates && (flags & O_TRUNC) != 0 && is_inside(path))
    record(nullptr, 0, "T %lu 0\n", static_cast<unsigned long>(facts_of(fd).st_ino));
  return fd;
}

FILE* log_fopen(const char* path, const char* mode) {
  static auto* const real =
      reinterpret_cast<FILE* (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "fopen64"));
  const Lock lock;
  const bool creates = *mode != 'r' && is_inside(path) && !exists(path);
  FILE* const file = real(path, mode);
  if (file != nullptr && creates) record_new(fileno(file), path);
  if (file != nullptr && !creates && *mode == 'w' && is_inside(path))
    record(nullptr, 0, "T %lu 0\n", static_cast<unsigned long>(facts_of(fileno(file)).st_ino));
  return file;
}

ssize_t log_write(int fd, const void* data, std::size_t size, off_t offset) {
  const Lock lock;
  long position = offset;
  if (log_file >= 0 && offset < 0) {
    const bool appends = (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) != 0;
    position = appends ? facts_of(fd).st_size : syscall(SYS_lseek, fd, 0L, SEEK_CUR);
  }
  const ssize_t written =
      offset < 0 ? syscall(SYS_write, fd, data, size) : syscall(SYS_pwrite64, fd, data, size, offset);
  if (log_file >= 0 && written > 0)
    record(data, static_cast<std::size_t>(written), "W %lu %ld %ld\n",
           static_cast<unsigned long>(facts_of(fd).st_ino), position, static_cast<long>(written));
  return written;
}

int log_sync(int fd, long call) {
  const Lock lock;
  const int result = static_cast<int>(syscall(call, fd));
  if (log_file >= 0 && result == 0) {
    if (call == SYS_syncfs)
      record(nullptr, 0, "F\n");
    else
      record(nullptr, 0, "S %lu\n", static_cast<unsigned long>(facts_of(fd).st_ino));
  }
  return result;
}

int log_rename(const char* from, const char* to) {
  const Lock lock;
  const int result = static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
  if (result == 0 && is_inside(to)) record(nullptr, 0, "R %s%c%s\n", from, '\0', to);
  return result;
}

int log_link(const char* from, const char* to) {
  const Lock lock;
  const int result = static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
  if (result == 0 && is_inside(to)) record(nullptr, 0, "L %s%c%s\n", from, '\0', to);
  return result;
}

int log_unlink(const char* path) {
  const Lock lock;
  const int result = static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
  if (result == 0 && is_inside(path)) record(nullptr, 0, "U %s\n", path);
  return result;
}

int log_truncate(int fd, off_t size) {
  const Lock lock;
  const int result = static_cast<int>(syscall(SYS_ftruncate, fd, size));
  if (log_file >= 0 && result == 0)
    record(nullptr, 0, "T %lu %ld\n", static_cast<unsigned long>(facts_of(fd).st_ino),
           static_cast<long>(size));
  return result;
}

int log_truncate(const char* path, off_t size) {
  const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0));
  if (fd < 0) return -1;
  const int result = log_truncate(fd, size);
  const int code = errno;
  syscall(SYS_close, fd);
  errno = code;
  return result;
}

int log_mkdir(const char* path, mode_t mode) {
  const Lock lock;
  const int result = static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
  if (result == 0 && is_inside(path)) {
    struct stat facts {};
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &facts, 0) != 0) facts.st_ino = 0;
    record(nullptr, 0, "D %lu %s\n", static_cast<unsigned long>(facts.st_ino), path);
  }
  return result;
}

}  // namespace tandem_faults
