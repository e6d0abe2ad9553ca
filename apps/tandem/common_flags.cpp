#include "apps/tandem/common_flags.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "tandem/core/parallel.h"

namespace tandem {
namespace {

int hidden_stderr = -1;  // the original standard error while --quiet is in effect

// Standard error becomes /dev/null: messages and progress come from many places, workers included.
void hide_messages() {
  if (hidden_stderr >= 0) return;
  std::fflush(stderr);
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) return;
  hidden_stderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (hidden_stderr >= 0) ::dup2(null, STDERR_FILENO);
  ::close(null);
}

}  // namespace

void restore_messages() {
  if (hidden_stderr < 0) return;
  std::fflush(stderr);
  ::dup2(hidden_stderr, STDERR_FILENO);
  ::close(hidden_stderr);
  hidden_stderr = -1;
}

void add_common_flags(CLI::App& app) {
  constexpr int max_threads = 4096;
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_option_no_throw("--threads") == nullptr)
      command
          ->add_option_function<int>(
              "--threads", [](int count) { set_thread_count(count); },
              "CPU threads; default: OMP_NUM_THREADS, else the CPUs of this process")
          ->type_name("N")
          ->check(whole_number_check(1, max_threads))
          ->group(rare_group);
    if (command->get_option_no_throw("--quiet") == nullptr)
      command
          ->add_flag_callback("-q,--quiet", hide_messages,
                              "Neither messages nor progress, only results and errors")
          ->group(rare_group);
  }
}

}  // namespace tandem
