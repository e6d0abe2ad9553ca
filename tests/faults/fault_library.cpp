// A library for LD_PRELOAD that lets the k-th call of one kind fail, or ends the process there; it can also
// slow down the calls for files and shift the clock of the day, while the process runs. Standing
// between the program and libc it needs no seam in the product, and it covers the calls of the other
// libraries and of child processes too. A file that all processes map has the counters and what to do; its
// layout is repeated in faults.py. File descriptors that are not files (pipes, the terminal) are left alone:
// they cannot give the errors of a disk.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tests/faults/file_log.h"

namespace {

enum Kind {
  open_file,
  create_file,
  read_file,
  write_file,
  sync_file,
  rename_file,
  truncate_file,
  make_folder,
  map_memory,
  start_process,
  make_pipe,
  start_thread,
  allocate,
  kinds
};

enum class Action : std::int32_t { fail = 0, fail_from_here_on = 1, half = 2, kill = 3, half_and_kill = 4 };

struct State {
  std::int32_t kind;  // −1: calls are only counted
  Action action;
  std::int32_t error;
  std::int32_t reserved;
  std::int64_t at;         // the number of the call, from 1
  std::int64_t min_bytes;  // smaller allocations are not counted
  std::int64_t fired;
  std::int64_t counts[kinds];
  std::int64_t delayed_permille;  // of the calls for files
  std::int64_t max_delay_ms;
  std::int64_t delays;
  std::int64_t delayed_ms;
  std::int64_t clock_shift_s;
  std::int64_t shifted_readings;
};

State* state = nullptr;

__attribute__((constructor)) void map_state() {
  const char* const path = std::getenv("TANDEM_FAULTS");
  if (path == nullptr) return;
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return;
  const long memory = syscall(SYS_mmap, nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
  syscall(SYS_close, file);
  tandem_faults::open_file_log();
  if (memory > 0) state = reinterpret_cast<State*>(memory);
}

// A slow disk: some of the calls take 1 to max_delay_ms. Which ones depends on their number.
void delay(std::int64_t number) {
  auto bits = static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits ^= bits >> 27;
  const std::int64_t limit_ms = state->max_delay_ms;
  if (limit_ms <= 0 || static_cast<std::int64_t>(bits % 1000) >= state->delayed_permille) return;
  const std::int64_t ms = 1 + static_cast<std::int64_t>((bits >> 20) % static_cast<std::uint64_t>(limit_ms));
  __atomic_add_fetch(&state->delays, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&state->delayed_ms, ms, __ATOMIC_RELAXED);
  const int code = errno;
  const timespec time{ms / 1000, ms % 1000 * 1'000'000};
  syscall(SYS_nanosleep, &time, nullptr);
  errno = code;
}

// Whether this call is the one, which is counted.
bool is_due(Kind kind) {
  if (state == nullptr) return false;
  const std::int64_t number = __atomic_add_fetch(&state->counts[kind], 1, __ATOMIC_RELAXED);
  if (kind <= make_folder && state->delayed_permille > 0) delay(number);
  if (state->kind != kind) return false;
  const bool due = state->action == Action::fail_from_here_on ? number >= state->at : number == state->at;
  if (due) __atomic_add_fetch(&state->fired, 1, __ATOMIC_RELAXED);
  return due;
}

void end_process() {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

// Whether the call fails, with errno set.
bool fails(Kind kind) {
  if (!is_due(kind)) return false;
  if (state->action == Action::kill || state->action == Action::half_and_kill) end_process();
  errno = state->error;
  return true;
}

bool is_file(int fd) {
  struct stat facts {};
  return syscall(SYS_fstat, fd, &facts) == 0 && S_ISREG(facts.st_mode) && fd > STDERR_FILENO;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int logged_open(int folder, const char* path, int flags, mode_t mode) {
  if (fails((flags & O_ACCMODE) == O_RDONLY ? open_file : create_file)) return -1;
  return tandem_faults::log_open(folder, path, flags, mode);
}

// Seconds that the clock of the day is ahead.
time_t clock_shift() {
  if (state == nullptr || state->clock_shift_s == 0) return 0;
  __atomic_add_fetch(&state->shifted_readings, 1, __ATOMIC_RELAXED);
  return static_cast<time_t>(state->clock_shift_s);
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

// The names of libc are given as labels: its headers declare them with attributes that differ by version.
int fault_open(const char* path, int flags, ...) asm("open");
int fault_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return logged_open(AT_FDCWD, path, flags, mode);
}

int fault_open64(const char* path, int flags, ...) asm("open64");
int fault_open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return logged_open(AT_FDCWD, path, flags, mode);
}

int fault_openat(int folder, const char* path, int flags, ...) asm("openat");
int fault_openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return logged_open(folder, path, flags, mode);
}

FILE* fault_fopen(const char* path, const char* mode) asm("fopen");
FILE* fault_fopen(const char* path, const char* mode) {
  if (fails(std::strpbrk(mode, "wa+") == nullptr ? open_file : create_file)) return nullptr;
  return tandem_faults::log_fopen(path, mode);
}

FILE* fault_fopen64(const char* path, const char* mode) asm("fopen64");
FILE* fault_fopen64(const char* path, const char* mode) {
  return fault_fopen(path, mode);
}

ssize_t fault_read(int fd, void* data, std::size_t size) asm("read");
ssize_t fault_read(int fd, void* data, std::size_t size) {
  if (is_file(fd) && is_due(read_file)) {
    if (state->action == Action::kill) end_process();
    if (state->action != Action::half) return errno = state->error, -1;
    size = (size + 1) / 2;
  }
  return syscall(SYS_read, fd, data, size);
}

ssize_t fault_write(int fd, const void* data, std::size_t size) asm("write");
ssize_t fault_write(int fd, const void* data, std::size_t size) {
  if (!is_file(fd)) return syscall(SYS_write, fd, data, size);
  bool ends = false;
  if (is_due(write_file)) {
    if (state->action == Action::kill) end_process();
    ends = state->action == Action::half_and_kill;
    if (!ends && state->action != Action::half) return errno = state->error, -1;
    size = (size + 1) / 2;
  }
  const ssize_t written = tandem_faults::log_write(fd, data, size, -1);
  if (ends) end_process();
  return written;
}

ssize_t fault_writev(int fd, const iovec* parts, int count) asm("writev");
ssize_t fault_writev(int fd, const iovec* parts, int count) {
  if (!is_file(fd)) return syscall(SYS_writev, fd, parts, count);
  ssize_t written = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len == 0) continue;
    const ssize_t one = fault_write(fd, parts[i].iov_base, parts[i].iov_len);
    if (one < 0) return written > 0 ? written : one;
    written += one;
    if (static_cast<std::size_t>(one) < parts[i].iov_len) break;
  }
  return written;
}

ssize_t fault_pwrite(int fd, const void* data, std::size_t size, off_t offset) asm("pwrite");
ssize_t fault_pwrite(int fd, const void* data, std::size_t size, off_t offset) {
  if (is_file(fd) && fails(write_file)) return -1;
  return tandem_faults::log_write(fd, data, size, offset);
}

ssize_t fault_pwrite64(int fd, const void* data, std::size_t size, off_t offset) asm("pwrite64");
ssize_t fault_pwrite64(int fd, const void* data, std::size_t size, off_t offset) {
  return fault_pwrite(fd, data, size, offset);
}

int fault_fsync(int fd) asm("fsync");
int fault_fsync(int fd) {
  return fails(sync_file) ? -1 : tandem_faults::log_sync(fd, SYS_fsync);
}

int fault_fdatasync(int fd) asm("fdatasync");
int fault_fdatasync(int fd) {
  return fails(sync_file) ? -1 : tandem_faults::log_sync(fd, SYS_fdatasync);
}

int fault_syncfs(int fd) asm("syncfs");
int fault_syncfs(int fd) {
  return fails(sync_file) ? -1 : tandem_faults::log_sync(fd, SYS_syncfs);
}

int fault_rename(const char* from, const char* to) asm("rename");
int fault_rename(const char* from, const char* to) {
  return fails(rename_file) ? -1 : tandem_faults::log_rename(from, to);
}

int fault_link(const char* from, const char* to) asm("link");
int fault_link(const char* from, const char* to) {
  return fails(rename_file) ? -1 : tandem_faults::log_link(from, to);
}

int fault_unlink(const char* path) asm("unlink");
int fault_unlink(const char* path) {
  return tandem_faults::log_unlink(path);
}

int fault_remove(const char* path) asm("remove");
int fault_remove(const char* path) {
  const int result = tandem_faults::log_unlink(path);
  if (result == 0 || (errno != EISDIR && errno != EPERM)) return result;
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int fault_ftruncate(int fd, off_t size) asm("ftruncate");
int fault_ftruncate(int fd, off_t size) {
  return fails(truncate_file) ? -1 : tandem_faults::log_truncate(fd, size);
}

int fault_ftruncate64(int fd, off_t size) asm("ftruncate64");
int fault_ftruncate64(int fd, off_t size) {
  return fault_ftruncate(fd, size);
}

int fault_truncate(const char* path, off_t size) asm("truncate");
int fault_truncate(const char* path, off_t size) {
  return fails(truncate_file) ? -1 : tandem_faults::log_truncate(path, size);
}

int fault_truncate64(const char* path, off_t size) asm("truncate64");
int fault_truncate64(const char* path, off_t size) {
  return fault_truncate(path, size);
}

int fault_mkdir(const char* path, mode_t mode) asm("mkdir");
int fault_mkdir(const char* path, mode_t mode) {
  return fails(make_folder) ? -1 : tandem_faults::log_mkdir(path, mode);
}

void* fault_mmap(void* address, std::size_t size, int protection, int flags, int fd,
                 off_t offset) asm("mmap");
void* fault_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) {
  if (fails(map_memory)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

void* fault_mmap64(void* address, std::size_t size, int protection, int flags, int fd,
                   off_t offset) asm("mmap64");
void* fault_mmap64(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) {
  return fault_mmap(address, size, protection, flags, fd, offset);
}

int fault_memfd_create(const char* name, unsigned flags) asm("memfd_create");
int fault_memfd_create(const char* name, unsigned flags) {
  return fails(map_memory) ? -1 : static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

int fault_spawn(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* words,
                char* const* environment) asm("posix_spawn");
int fault_spawn(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* words, char* const* environment) {
  static auto* const real = next<decltype(fault_spawn)>("posix_spawn");
  return fails(start_process) ? errno : real(pid, program, actions, attributes, words, environment);
}

int fault_spawnp(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* words,
                 char* const* environment) asm("posix_spawnp");
int fault_spawnp(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* words, char* const* environment) {
  static auto* const real = next<decltype(fault_spawnp)>("posix_spawnp");
  return fails(start_process) ? errno : real(pid, program, actions, attributes, words, environment);
}

pid_t fault_fork() asm("fork");
pid_t fault_fork() {
  static auto* const real = next<decltype(fault_fork)>("fork");
  return fails(start_process) ? -1 : real();
}

int fault_pipe(int* ends) asm("pipe");
int fault_pipe(int* ends) {
  return fails(make_pipe) ? -1 : static_cast<int>(syscall(SYS_pipe2, ends, 0));
}

int fault_pipe2(int* ends, int flags) asm("pipe2");
int fault_pipe2(int* ends, int flags) {
  return fails(make_pipe) ? -1 : static_cast<int>(syscall(SYS_pipe2, ends, flags));
}

int fault_socketpair(int domain, int type, int protocol, int* ends) asm("socketpair");
int fault_socketpair(int domain, int type, int protocol, int* ends) {
  return fails(make_pipe) ? -1 : static_cast<int>(syscall(SYS_socketpair, domain, type, protocol, ends));
}

int fault_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                 void* context) asm("pthread_create");
int fault_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                 void* context) {
  static auto* const real = next<decltype(fault_thread)>("pthread_create");
  return fails(start_thread) ? errno : real(thread, attributes, function, context);
}

// Only the clock of the day jumps; CLOCK_MONOTONIC, by definition, does not.
int fault_clock_gettime(clockid_t clock, timespec* time) asm("clock_gettime");
int fault_clock_gettime(clockid_t clock, timespec* time) {
  static auto* const real = next<decltype(fault_clock_gettime)>("clock_gettime");
  const int result = real(clock, time);
  const bool of_the_day = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
  if (result == 0 && of_the_day) time->tv_sec += clock_shift();
  return result;
}

int fault_gettimeofday(timeval* time, void* zone) asm("gettimeofday");
int fault_gettimeofday(timeval* time, void* zone) {
  static auto* const real = next<decltype(fault_gettimeofday)>("gettimeofday");
  const int result = real(time, zone);
  if (result == 0 && time != nullptr) time->tv_sec += clock_shift();
  return result;
}

time_t fault_time(time_t* result) asm("time");
time_t fault_time(time_t* result) {
  timespec now{};
  fault_clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

void* fault_malloc(std::size_t size) asm("malloc");
void* fault_malloc(std::size_t size) {
  if (state != nullptr && size >= static_cast<std::size_t>(state->min_bytes) && fails(allocate))
    return nullptr;
  return __libc_malloc(size);
}

void* fault_calloc(std::size_t count, std::size_t size) asm("calloc");
void* fault_calloc(std::size_t count, std::size_t size) {
  if (state != nullptr && count * size >= static_cast<std::size_t>(state->min_bytes) && fails(allocate))
    return nullptr;
  return __libc_calloc(count, size);
}

void* fault_realloc(void* memory, std::size_t size) asm("realloc");
void* fault_realloc(void* memory, std::size_t size) {
  if (state != nullptr && size >= static_cast<std::size_t>(state->min_bytes) && fails(allocate))
    return nullptr;
  return __libc_realloc(memory, size);
}

void* fault_aligned_alloc(std::size_t alignment, std::size_t size) asm("aligned_alloc");
void* fault_aligned_alloc(std::size_t alignment, std::size_t size) {
  if (state != nullptr && size >= static_cast<std::size_t>(state->min_bytes) && fails(allocate))
    return nullptr;
  return __libc_memalign(alignment, size);
}

int fault_posix_memalign(void** memory, std::size_t alignment, std::size_t size) asm("posix_memalign");
int fault_posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = fault_aligned_alloc(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
