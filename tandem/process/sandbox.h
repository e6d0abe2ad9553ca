// A sandbox for code that is not ours: what a process may use and reach, decided before that code is loaded.
// The restrictions cannot be undone, and programs that are executed afterwards inherit them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct SandboxOptions {
  // Whether it may start processes, which stay in its process group. False: fork() fails.
  bool allow_processes = false;
  // False: no file can be opened except below the paths that follow, where the kernel has Landlock; as root,
  // the process also becomes a user without rights.
  bool allow_files = true;
  std::vector<std::string> readable;  // files and folders, also for executing
  std::vector<std::string> writable;  // folders
  std::vector<int> descriptors;       // kept open besides 0, 1 and 2; all others are closed
  std::int64_t memory_bytes = 0;      // of address space; 0: no limit
  // Of private memory that can be written to; 0: no limit. For CUDA, which reserves more address space than
  // there is memory.
  std::int64_t data_bytes = 0;
  std::int64_t file_bytes = 0;     // maximum size of a file; 0: no limit
  std::int64_t cpu_seconds = 0;    // 0: no limit
  std::int64_t max_processes = 0;  // processes and threads of the user; 0: no limit

  // One word per option, for the command line of the program that enters the sandbox.
  std::vector<std::string> to_words() const;
  // Throws Error for a word that to_words() does not write.
  static SandboxOptions parse(const std::vector<std::string>& words);
};

// Restricts the calling process, which must have one thread: no network, no new privileges, no signals to and
// no memory of other processes, no new session or process group, and what the options say. It is killed when
// its parent ends. Throws Error when a restriction that the kernel offers cannot be made.
void enter_sandbox(const SandboxOptions& options);

// Files and folders of the system that programs, compilers and Python need for reading.
std::vector<std::string> system_paths();

// The protections that cannot be had here, in words with the reason; empty if there are none. A seccomp
// filter that is refused though the kernel has them is not among them: enter_sandbox() throws then.
std::vector<std::string> missing_protections(const SandboxOptions& options);

}  // namespace tandem
