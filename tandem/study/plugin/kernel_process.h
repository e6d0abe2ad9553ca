// KernelProcess: a plugin in a process of its own. Inputs and outputs are in memory that both processes map
// (for CUDA: in device memory that both have opened), so that nothing is copied in a call. The clock is on
// this side, and so is every check of a result; nothing the other process says is believed except that it is
// done. While it has nothing to do, it is stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/process/sandbox.h"
#include "tandem/study/plugin/kernel_format.h"
#include "tandem/study/plugin/plugin_file.h"

namespace tandem {

// What a plugin did wrong, as a phrase that follows its name: "was ended by signal 11", "took longer than
// 10 s", "has no function tandem_max".
class PluginFailure : public Error {
 public:
  using Error::Error;
};

// The plugin has no function for the case, or returned that it does not support it.
class UnsupportedCase : public PluginFailure {
 public:
  using PluginFailure::PluginFailure;
};

// Text that comes from a plugin, as one line of bounded length.
std::string plugin_phrase(std::string_view text);

struct KernelProcessOptions {
  std::string program;                        // that runs plugins; empty: this program
  std::vector<std::string> environment = {};  // "NAME=value", for the process
  bool inherit_environment = true;            // besides that of this process
  SandboxOptions sandbox = {};                // memory_bytes has no effect on CUDA plugins
  bool huge_pages = false;      // arrays in memory of the process, where they may be written to; not for CUDA
  double timeout_s = 20;        // of one run()
  double start_timeout_s = 60;  // of loading: Python packages take seconds
};

class KernelProcess {
 public:
  // Starts the process and loads the plugin in it. Throws PluginFailure when the plugin cannot be loaded, and
  // Error when the memory does not suffice or the machine lacks what it takes.
  KernelProcess(const PluginFile& plugin, const KernelFormat& format, const KernelProcessOptions& options);
  ~KernelProcess();  // kills the process and its children
  KernelProcess(const KernelProcess&) = delete;
  KernelProcess& operator=(const KernelProcess&) = delete;

  // Whether its arrays are on a CUDA device.
  bool is_cuda() const;

  // Copies an input to where the plugin reads it.
  void set_input(int set, int index, std::span<const std::byte> values);
  // Fills the outputs of a set with bytes that no correct result consists of: NaN for floating-point types.
  void poison_outputs(int set);

  // What the process does after its reply: it is stopped, so that results can be believed, or it waits, as
  // its threads do between two calls in one process.
  enum class AfterRun { stop, wait };

  // Calls the function once per element of `sets`, on that set, and waits until all results are complete.
  // Returns the milliseconds from the request to the reply. Throws PluginFailure; the process is gone then.
  double run(std::span<const int> sets, int threads, AfterRun after = AfterRun::stop);

  // A copy of an output, made after the process was stopped.
  std::vector<std::byte> output(int set, int index);
  // Throws PluginFailure when the plugin wrote outside of the outputs of a set or changed its inputs.
  void check_memory(int set);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
