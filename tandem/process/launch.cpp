#include "tandem/process/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tandem/core/check.h"
#include "tandem/core/error.h"

namespace tandem {

std::string this_program() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || static_cast<std::size_t>(length) == sizeof path)
    fail("[launch] cannot find this program");
  return {path, static_cast<std::size_t>(length)};
}

namespace {

class SpawnSettings {
 public:
  explicit SpawnSettings(const LaunchOptions& options) {
    expect(posix_spawn_file_actions_init(&actions_) == 0 && posix_spawnattr_init(&attributes_) == 0);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (!options.keep_output) posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    if (options.discard_errors) posix_spawn_file_actions_addopen(&actions_, 2, "/dev/null", O_WRONLY, 0);
    if (options.error_fd >= 0) posix_spawn_file_actions_adddup2(&actions_, options.error_fd, 2);
    // Duplicating a descriptor onto itself clears its close-on-exec flag.
    for (const int fd : options.fds) posix_spawn_file_actions_adddup2(&actions_, fd, fd);
    if (!options.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions_, options.folder.c_str());
    if (options.own_group) set_own_group();
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
  void set_own_group() {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

LaunchResult launch(const std::string& program, const std::vector<std::string>& arguments,
                    const LaunchOptions& options) {
  expect(!arguments.empty());
  const SpawnSettings settings(options);
  const std::vector<char*> argv = pointers(arguments);
  std::vector<char*> environment;
  if (options.environment) environment = pointers(*options.environment);
  const auto spawn = options.search_path ? ::posix_spawnp : ::posix_spawn;
  LaunchResult result;
  result.error = spawn(&result.pid, program.c_str(), settings.actions(), settings.attributes(), argv.data(),
                       options.environment ? environment.data() : environ);
  if (result.error != 0) result.pid = -1;
  return result;
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace tandem
