// Runs the program as a user would and captures exit status, standard output and standard error.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/image/test_files.h"
#include "tests/paths.h"

namespace tandem {

struct ProgramResult {
  int status = -1;  // -1 if it was terminated by a signal
  std::string out, err;
};

inline std::string text_of(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

// Becomes the program in `folder`. words[0] may be another one, such as "mpirun".
[[noreturn]] inline void exec_program(const std::vector<std::string>& words,
                                      const std::filesystem::path& folder, int out, int err) {
  const bool is_other = !words.empty() && words[0].starts_with("mpirun");
  std::vector<char*> arguments;
  if (!is_other) arguments.push_back(const_cast<char*>("tandem"));
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (chdir(folder.c_str()) == 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0)
    execvp(is_other ? arguments[0] : program_file, arguments.data());
  _exit(99);
}

// Runs the program in `folder` with its output redirected to those descriptors, and waits for it.
inline int run_program(const std::vector<std::string>& words, const std::filesystem::path& folder, int out,
                       int err, bool no_color) {
  const pid_t child = fork();
  if (child == 0) {
    if (no_color)
      setenv("NO_COLOR", "1", 1);
    else
      unsetenv("NO_COLOR");
    exec_program(words, folder, out, err);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// The output goes to files outside `folder`, so that the folder contains only files written by the program.
inline ProgramResult run_program(const std::vector<std::string>& words, const std::filesystem::path& folder) {
  const TempFolder streams;
  const int out = open((streams / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int err = open((streams / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ProgramResult result;
  result.status = run_program(words, folder, out, err, false);
  close(out);
  close(err);
  result.out = text_of(streams / "out");
  result.err = text_of(streams / "err");
  return result;
}

inline ProgramResult run_program(const std::vector<std::string>& words) {
  const TempFolder folder;
  return run_program(words, folder.path());
}

}  // namespace tandem
