#include "tandem/files/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include "tandem/core/check.h"

namespace tandem {
namespace {

class FileActions {
 public:
  FileActions() { expect(posix_spawn_file_actions_init(&actions_) == 0); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// The status waitpid() gives, or nothing in time: then the child is killed and reaped.
bool wait_for(pid_t child, int limit_s, int& status) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limit_s);
  while (true) {
    const pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child) return true;
    expect(done == 0 || errno == EINTR);
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return false;
}

}  // namespace

std::string spawn(const std::vector<std::string>& words, const SpawnOptions& options) {
  expect(!words.empty());
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(actions.get(), 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(actions.get(), 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addchdir_np(actions.get(), options.folder.c_str());
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, words[0].c_str(), actions.get(), nullptr, arguments.data(), environ);
  if (error == ENOENT) return words[0] + " is not installed";
  if (error != 0)
    return fmt::format("{} cannot be started: {}", words[0], std::generic_category().message(error));
  int status = 0;
  if (!wait_for(child, options.limit_s, status))
    return fmt::format("{} took longer than {} seconds", words[0], options.limit_s);
  if (WIFSIGNALED(status)) return fmt::format("{} was ended by signal {}", words[0], WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return fmt::format("{} ended with status {}", words[0], WEXITSTATUS(status));
  return {};
}

}  // namespace tandem
