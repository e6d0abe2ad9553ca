// rlimits, Landlock and a seccomp filter; as root also another user.
#include "tandem/process/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "tandem/core/check.h"
#include "tandem/process/descriptor.h"

namespace tandem {
namespace {

// ---- limits ----

void set_limit(decltype(RLIMIT_AS) resource, std::int64_t value, std::string_view what) {
  if (value <= 0) return;
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_max = std::min(static_cast<rlim_t>(value), limit.rlim_max);
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(resource, &limit) != 0) fail("[sandbox] cannot limit {}: {}", what, errno_message(errno));
}

// Sanitizers reserve terabytes of address space, which count as data too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// ---- descriptors ----

void close_range(int first, int last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  for (int fd = first; fd <= std::min(last, 1 << 16); ++fd) ::close(fd);  // before Linux 5.9
}

void close_other_descriptors(std::vector<int> kept) {
  std::ranges::sort(kept);
  int first = 3;
  for (const int fd : kept) {
    close_range(first, fd - 1);
    first = std::max(first, fd + 1);
  }
  close_range(first, std::numeric_limits<int>::max());
}

// ---- files: Landlock, which any user may use ----

// Why Landlock cannot be used; empty if it can.
std::string missing_landlock() {
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0) return {};
  if (errno == ENOSYS) return "the kernel has no Landlock";
  if (errno == EOPNOTSUPP) return "Landlock is turned off in the kernel";
  return fmt::format("the system around this process refuses Landlock: {}", errno_message(errno));
}

constexpr std::uint64_t reading =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t writing = reading | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                  LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                  LANDLOCK_ACCESS_FS_MAKE_REG;
constexpr std::uint64_t every_access = (std::uint64_t{LANDLOCK_ACCESS_FS_MAKE_SYM} << 1) - 1;
constexpr std::uint64_t for_files =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

void allow_path(int rules, const std::string& path, std::uint64_t access) {
  const Descriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file && errno == ENOENT) return;  // such as /lib64, which not every system has
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0)
    fail("[sandbox] cannot open {}: {}", path, errno_message(errno));
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(info.st_mode) ? access : access & for_files;
  rule.parent_fd = file.get();
  if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    fail("[sandbox] cannot allow {}: {}", path, errno_message(errno));
}

void restrict_files(const SandboxOptions& options) {
  if (!missing_landlock().empty()) return;
  landlock_ruleset_attr all{};
  all.handled_access_fs = every_access;
  const Descriptor rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0)));
  if (!rules) fail("[sandbox] cannot restrict files: {}", errno_message(errno));
  for (const std::string& path : options.readable) allow_path(rules.get(), path, reading);
  for (const std::string& path : options.writable) allow_path(rules.get(), path, writing);
  allow_path(rules.get(), "/dev/null", reading | LANDLOCK_ACCESS_FS_WRITE_FILE);
  allow_path(rules.get(), "/dev/urandom", reading);
  if (syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0)
    fail("[sandbox] cannot restrict files: {}", errno_message(errno));
}

// A user that owns nothing. Only root can become another user, and not in every container.
void drop_privileges() {
  constexpr uid_t nobody = 65534;
  if (::geteuid() != 0) return;
  if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
      ::setresuid(nobody, nobody, nobody) != 0)
    fail(
        "[sandbox] root cannot become another user here: {}; run as another user than root, or with the "
        "capabilities SETUID and SETGID",
        errno_message(errno));
}

// ---- system calls: seccomp ----

#if defined(__x86_64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t this_architecture = 0;
#endif

// System calls that fail: connections, other processes, mounts, and what widens the kernel's surface.
constexpr int refused_calls[] = {SYS_connect,
                                 SYS_accept,
                                 SYS_accept4,
                                 SYS_ptrace,
                                 SYS_process_vm_readv,
                                 SYS_process_vm_writev,
                                 SYS_setpgid,
                                 SYS_setsid,
                                 SYS_mount,
                                 SYS_umount2,
                                 SYS_pivot_root,
                                 SYS_chroot,
                                 SYS_unshare,
                                 SYS_setns,
                                 SYS_bpf,
                                 SYS_perf_event_open,
                                 SYS_userfaultfd,
                                 SYS_keyctl,
                                 SYS_add_key,
                                 SYS_request_key,
                                 SYS_io_uring_setup,
                                 SYS_kexec_load,
                                 SYS_init_module,
                                 SYS_finit_module,
                                 SYS_delete_module,
                                 SYS_reboot,
                                 SYS_swapon,
                                 SYS_swapoff,
                                 SYS_quotactl,
                                 SYS_acct,
                                 SYS_personality,
                                 SYS_pidfd_open,
                                 SYS_pidfd_getfd,
                                 SYS_pidfd_send_signal,
                                 SYS_tkill,
                                 SYS_setpriority,
                                 SYS_sched_setscheduler,
                                 SYS_sched_setparam,
                                 SYS_sched_setattr,
                                 SYS_clock_settime,
                                 SYS_settimeofday,
                                 SYS_open_by_handle_at,
                                 SYS_name_to_handle_at,
                                 SYS_kcmp,
                                 SYS_sethostname,
                                 SYS_setdomainname,
                                 SYS_ioprio_set};

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, this_architecture, 1, 0);
    give(SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
    load(offsetof(seccomp_data, nr));  // the x32 interface has numbers of its own
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
    give(SECCOMP_RET_ERRNO | ENOSYS);
#endif
  }

  void refuse(int call, int error = EPERM) {
    load(offsetof(seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1);
    give(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
  }

  // Refuses the call unless the bits of `mask` in its first argument equal `value`.
  void refuse_unless(int call, std::uint32_t mask, std::uint32_t value) {
    compare(call, mask, value, 1, 0);
  }
  void refuse_if(int call, std::uint32_t value) {
    compare(call, 0xffffffff, value, 0, 1);
  }

  void install() {
    give(SECCOMP_RET_ALLOW);
    const sock_fprog program{.len = static_cast<unsigned short>(code_.size()), .filter = code_.data()};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
      fail("[sandbox] cannot filter system calls: {}", errno_message(errno));
  }

 private:
  void compare(int call, std::uint32_t mask, std::uint32_t value, int if_equal, int if_not) {
    load(offsetof(seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 4);
    load(offsetof(seccomp_data, args));  // the lower half: both architectures are little-endian
    add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, value, if_equal, if_not);
    give(SECCOMP_RET_ERRNO | EPERM);
  }
  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0);
  }
  void give(std::uint32_t result) {
    add(BPF_RET | BPF_K, result, 0, 0);
  }
  void add(int code, std::uint32_t value, int if_true, int if_false) {
    code_.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
                     static_cast<std::uint8_t>(if_false), value});
  }

  std::vector<sock_filter> code_;
};

// False if the kernel does not offer filters. True also if a filter around this process refuses another one:
// then restrict_calls() fails.
bool has_seccomp() {
  std::uint32_t action = SECCOMP_RET_ERRNO;
  if (this_architecture == 0) return false;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 || errno == EPERM || errno == EACCES;
}

void restrict_calls(const SandboxOptions& options) {
  if (!has_seccomp()) return;
  constexpr std::uint32_t every_bit = 0xffffffff;
  const auto self = static_cast<std::uint32_t>(::getpid());
  Filter filter;
  for (const int call : refused_calls) filter.refuse(call);
  // CUDA does not start without a local socket that it binds and listens on; nothing can be connected.
  filter.refuse_unless(SYS_socket, every_bit, AF_UNIX);
  filter.refuse_unless(SYS_prlimit64, every_bit, 0);
  filter.refuse_unless(SYS_sched_setaffinity, every_bit, 0);
  if (options.allow_processes) {
    // Children may be signaled, and their process numbers are not known yet; the parent may not.
    const auto parent = static_cast<std::uint32_t>(::getppid());
    for (const int call : {SYS_kill, SYS_tgkill}) filter.refuse_if(call, parent);
    filter.refuse_if(SYS_kill, every_bit);  // −1: every process of the user
  } else {
    // Signals to itself are allowed: abort() sends one.
    filter.refuse_unless(SYS_kill, every_bit, self);
    filter.refuse_unless(SYS_tgkill, every_bit, self);
#ifdef SYS_fork
    filter.refuse(SYS_fork);
    filter.refuse(SYS_vfork);
#endif
    filter.refuse_unless(SYS_clone, CLONE_THREAD, CLONE_THREAD);
    filter.refuse(SYS_clone3,
                  ENOSYS);  // its flags are in memory, where a filter cannot look; libc uses clone
  }
  filter.install();
}

// ---- words ----

struct NumberWord {
  std::string_view name;
  std::int64_t SandboxOptions::*member;
};
constexpr NumberWord number_words[] = {{"memory", &SandboxOptions::memory_bytes},
                                       {"data", &SandboxOptions::data_bytes},
                                       {"file", &SandboxOptions::file_bytes},
                                       {"cpu", &SandboxOptions::cpu_seconds},
                                       {"processes", &SandboxOptions::max_processes}};

}  // namespace

std::vector<std::string> SandboxOptions::to_words() const {
  std::vector<std::string> words;
  if (allow_processes) words.emplace_back("allow-processes");
  if (!allow_files) words.emplace_back("no-files");
  for (const std::string& path : readable) words.push_back("read=" + path);
  for (const std::string& path : writable) words.push_back("write=" + path);
  for (const int fd : descriptors) words.push_back(fmt::format("fd={}", fd));
  for (const NumberWord& word : number_words)
    if (this->*word.member > 0) words.push_back(fmt::format("{}={}", word.name, this->*word.member));
  return words;
}

SandboxOptions SandboxOptions::parse(const std::vector<std::string>& words) {
  SandboxOptions options;
  for (const std::string& word : words) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(std::min(equals + 1, word.size()));
    std::int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, number);
    const bool is_number = error == std::errc() && rest == end && number > 0;
    const auto* limit = std::ranges::find(number_words, name, &NumberWord::name);
    if (word == "allow-processes")
      options.allow_processes = true;
    else if (word == "no-files")
      options.allow_files = false;
    else if (name == "read")
      options.readable.push_back(value);
    else if (name == "write")
      options.writable.push_back(value);
    else if (name == "fd" && is_number)
      options.descriptors.push_back(static_cast<int>(number));
    else if (limit != std::end(number_words) && is_number)
      options.*limit->member = number;
    else
      fail("[sandbox] expected an option of the sandbox, got '{}'", word);
  }
  return options;
}

void enter_sandbox(const SandboxOptions& options) {
  const pid_t parent = ::getppid();
  close_other_descriptors(options.descriptors);
  if (!sanitized) {
    set_limit(RLIMIT_AS, options.memory_bytes, "memory");
    set_limit(RLIMIT_DATA, options.data_bytes, "memory");
  }
  set_limit(RLIMIT_FSIZE, options.file_bytes, "the size of files");
  set_limit(RLIMIT_CPU, options.cpu_seconds, "CPU time");
  set_limit(RLIMIT_NPROC, options.max_processes, "the number of processes");
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    fail("[sandbox] cannot forbid new privileges: {}", errno_message(errno));
  if (!options.allow_files) {
    restrict_files(options);
    drop_privileges();
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // after the change of user, which clears it
  check(::getppid() == parent, "[sandbox] the parent has ended");
  restrict_calls(options);
}

std::vector<std::string> system_paths() {
  return {"/usr",
          "/lib",
          "/lib64",
          "/bin",
          "/etc/alternatives",
          "/etc/ld.so.cache",
          "/etc/ld.so.conf",
          "/etc/ld.so.conf.d",
          "/proc/cpuinfo",
          "/proc/meminfo",
          "/proc/stat",
          "/sys/devices/system"};
}

std::vector<std::string> missing_protections(const SandboxOptions& options) {
  std::vector<std::string> missing;
  if (!has_seccomp()) missing.emplace_back("system calls are not filtered (the kernel has no seccomp)");
  if (const std::string reason = missing_landlock(); !options.allow_files && !reason.empty())
    missing.push_back(fmt::format("files of this user can be read ({})", reason));
  return missing;
}

}  // namespace tandem
