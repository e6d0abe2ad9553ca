// Starts programs: the one place that calls posix_spawn. Never a plain fork(): a forked copy of a process
// with threads and a GPU context cannot safely run that process's own code.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

// The path of the program that runs. Throws Error if it is not known.
std::string this_program();

struct LaunchOptions {
  bool search_path = false;      // look the program up in PATH
  std::filesystem::path folder;  // working directory; empty: this process's
  std::vector<int> fds;          // descriptors the program inherits under the same numbers
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; none: this process's
  bool own_group = false;       // a process group of its own, with default signal handling
  bool keep_output = false;     // standard output is this process's; otherwise /dev/null
  bool discard_errors = false;  // standard error goes to /dev/null, like standard output
  int error_fd = -1;            // a descriptor that becomes standard error
};

struct LaunchResult {
  pid_t pid = -1;
  int error = 0;  // errno value when the program could not be started
};

// Starts `program` without standard input. `arguments` begins with the program's name (argv[0]).
// The caller reaps the child.
LaunchResult launch(const std::string& program, const std::vector<std::string>& arguments,
                    const LaunchOptions& options);

// How a child ended, from the status waitpid() gives: "was ended by signal 9", "ended with status 1".
std::string describe_exit(int status);

}  // namespace tandem
