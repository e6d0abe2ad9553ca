#include "tandem/process/run_program.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include "tandem/core/check.h"
#include "tandem/process/descriptor.h"
#include "tandem/process/launch.h"

namespace tandem {
namespace {

// Waits for the child's exit status. False after the timeout: the child has been killed and reaped.
bool wait_for(pid_t child, const RunProgramOptions& options, int& status) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options.timeout_s);
  while (true) {
    const pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child) return true;
    expect(done == 0 || errno == EINTR);
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(options.own_group ? -child : child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return false;
}

}  // namespace

std::string run_program(const std::vector<std::string>& words, const RunProgramOptions& options) {
  expect(!words.empty());
  const std::string& program = words[0];
  const Descriptor errors(options.errors ? ::memfd_create("errors", MFD_CLOEXEC) : -1);
  const LaunchResult child = launch(program, words,
                                    {.search_path = true,
                                     .folder = options.folder,
                                     .own_group = options.own_group,
                                     .discard_errors = !errors,
                                     .error_fd = errors.get()});
  if (child.error == ENOENT) return program + " is not installed";
  if (child.error != 0)
    return fmt::format("{} cannot be started: {}", program, std::generic_category().message(child.error));
  int status = 0;
  if (!wait_for(child.pid, options, status))
    return fmt::format("{} took longer than {} seconds", program, options.timeout_s);
  if (options.errors) {
    options.errors->resize(64 << 10);
    const ssize_t count = ::pread(errors.get(), options.errors->data(), options.errors->size(), 0);
    options.errors->resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fmt::format("{} {}", program, describe_exit(status));
}

}  // namespace tandem
