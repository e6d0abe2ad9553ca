// posix_spawn, pidfd and waitpid.
#include "tandem/data/worker_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <string_view>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

class SpawnSettings {
 public:
  explicit SpawnSettings(const std::vector<int>& fds) {
    expect(posix_spawn_file_actions_init(&actions_) == 0 && posix_spawnattr_init(&attributes_) == 0);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    for (const int fd : fds) posix_spawn_file_actions_adddup2(&actions_, fd, fd);  // opens it across exec
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

// This process's, without what would make libraries start a team, or bind it, as they are loaded.
std::vector<std::string> worker_environment() {
  constexpr std::string_view dropped[] = {
      "OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "OMP_PROC_BIND=", "OMP_PLACES=", "GOMP_CPU_AFFINITY="};
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (std::none_of(std::begin(dropped), std::end(dropped),
                     [&](std::string_view name) { return text.starts_with(name); }))
      all.emplace_back(text);
  }
  all.emplace_back("OMP_NUM_THREADS=1");
  all.emplace_back("OPENBLAS_NUM_THREADS=1");
  all.emplace_back(std::string(worker_mark) + "=1");
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& program, const std::vector<std::string>& words,
                             const std::vector<int>& fds)
    : program_(program) {
  std::vector<std::string> line{"tandem"};
  line.insert(line.end(), words.begin(), words.end());
  const std::vector<std::string> environment = worker_environment();
  const SpawnSettings settings(fds);
  const int error = ::posix_spawn(&pid_, program.c_str(), settings.actions(), settings.attributes(),
                                  pointers(line).data(), pointers(environment).data());
  if (error != 0) pid_ = -1;
  check(error == 0, "[loader] cannot start a worker: {}: {}", program, system_reason(error));
#ifdef SYS_pidfd_open
  // The child is not reaped yet, so its number cannot be another's.
  end_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (end_) ::fcntl(end_.get(), F_SETFD, FD_CLOEXEC);
#endif
}

WorkerProcess::~WorkerProcess() {
  if (pid_ < 0) return;
  kill();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : program_(std::move(other.program_)), pid_(std::exchange(other.pid_, -1)), end_(std::move(other.end_)) {}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  std::swap(program_, other.program_);
  std::swap(pid_, other.pid_);
  std::swap(end_, other.end_);
  return *this;
}

void WorkerProcess::kill() const {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

std::optional<std::string> WorkerProcess::ended() {
  if (pid_ < 0) return "is gone";
  int status = 0;
  const pid_t found = ::waitpid(pid_, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return std::nullopt;
  pid_ = -1;  // reaped, here or (ECHILD) by a process that ignores SIGCHLD
  end_.reset();
  return found > 0 ? how_it_ended(status) : "is gone";
}

}  // namespace tandem
