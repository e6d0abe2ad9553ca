// The arrays of a plugin and the channel to its process, together.
#include "tandem/study/plugin/kernel_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/process/launch.h"
#include "tandem/process/shared_memory.h"
#include "tandem/study/plugin/array_memory.h"
#include "tandem/study/plugin/plugin_channel.h"
#include "tandem/study/plugin/protocol.h"
#include "tandem/study/plugin/python.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// The command line of the plugin's process; plugin_host.h describes it.
std::vector<std::string> host_words(const PluginFile& plugin, const KernelProcessOptions& options,
                                    const std::vector<int>& fds) {
  SandboxOptions sandbox = options.sandbox;
  sandbox.readable.push_back(plugin.library.string());
  sandbox.descriptors = fds;
  std::vector<std::string> limits = sandbox.to_words(), host;
  for (const int fd : fds) host.push_back(std::to_string(fd));
  host.push_back(plugin.library.string());
  std::vector<std::string> words{options.program.empty() ? this_program() : options.program,
                                 plugin.is_python ? "confined" : "plugin-host"};
  const auto add = [&](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (plugin.is_python) {
    limits.emplace_back("--");
    add(limits);
    add(python_host_command());
    add(host);
  } else {
    add(host);
    add(limits);
  }
  return words;
}

}  // namespace

std::string plugin_phrase(std::string_view text) {
  constexpr int max_width = 200;
  return shorten(one_line(text), max_width);
}

class KernelProcess::State {
 public:
  State(const PluginFile& plugin, const KernelFormat& format, const KernelProcessOptions& options)
      : sets_(format.sets),
        timeout_s_(options.timeout_s),
        memory_(format),
        page_memory_(sizeof(detail::PluginPage), "the page of a plugin", "free memory") {
    check(!format.function.empty() && format.function.size() <= detail::max_function_name,
          "[plugin] expected a function name of up to {} letters, got '{}'", detail::max_function_name,
          format.function);
    memory_.describe(page());
    if (options.huge_pages) page().private_bytes = static_cast<std::int64_t>(memory_.bytes());
    format.function.copy(page().function, detail::max_function_name);
    const Descriptor inputs = memory_.open_inputs();
    const std::vector<int> fds{page_memory_.fd(), inputs.get(), memory_.outputs_fd(), channel_.requests_fd(),
                               channel_.replies_fd()};
    std::vector<std::string> environment = options.environment;
    if (options.inherit_environment)
      for (std::string& variable : detail::plugin_environment()) environment.push_back(std::move(variable));
    channel_.start(host_words(plugin, options, fds), fds, std::move(environment));
    channel_.wait_for_reply(options.start_timeout_s);
    check_loaded();
    is_cuda_ = page().is_cuda != 0;
    if (!is_cuda_ && options.huge_pages && page().private_address != 0)
      memory_.move_to_process(ProcessMemory(channel_.pid(), page().private_address), page());
    if (!is_cuda_) return;
    if (cuda_device_count() == 0)
      throw PluginFailure("needs a CUDA GPU, and there is none that can be used here");
    memory_.move_to_gpu(page());
  }

  bool is_cuda() const { return is_cuda_; }
  detail::ArrayMemory& memory() { return memory_; }

  double run(std::span<const int> sets, int threads, AfterRun after) {
    check(!sets.empty() && sets.size() <= detail::max_calls, "[plugin] expected 1 to {} calls, got {}",
          detail::max_calls, sets.size());
    for (const int set : sets)
      check(set >= 0 && set < sets_, "[plugin] expected a set below {}, got {}", sets_, set);
    page().threads = threads;
    page().call_count = static_cast<std::int32_t>(sets.size());
    page().result = 0;
    std::ranges::copy(sets, page().calls);
    const double elapsed_ms = channel_.ask(timeout_s_, after == AfterRun::stop);
    if (const std::int32_t result = page().result; result != 0)
      throw UnsupportedCase(fmt::format("returned {}: it does not support this case", result));
    if (after == AfterRun::stop) memory_.fetch_outputs(sets);
    return elapsed_ms;
  }

 private:
  detail::PluginPage& page() { return *reinterpret_cast<detail::PluginPage*>(page_memory_.data()); }

  void check_loaded() {
    page().message[detail::max_message] = '\0';
    const std::string message = plugin_phrase(page().message);
    if (page().is_loaded == 2) throw UnsupportedCase(message);
    if (page().is_loaded != 1) throw PluginFailure(message.empty() ? "cannot be loaded" : message);
  }

  int sets_;
  double timeout_s_;
  detail::ArrayMemory memory_;
  SharedMemory page_memory_;
  detail::PluginChannel channel_;
  bool is_cuda_ = false;
};

KernelProcess::KernelProcess(const PluginFile& plugin, const KernelFormat& format,
                             const KernelProcessOptions& options)
    : state_(std::make_unique<State>(plugin, format, options)) {}
KernelProcess::~KernelProcess() = default;

bool KernelProcess::is_cuda() const {
  return state_->is_cuda();
}

void KernelProcess::set_input(int set, int index, std::span<const std::byte> values) {
  state_->memory().set_input(set, index, values);
}

void KernelProcess::poison_outputs(int set) {
  state_->memory().poison_outputs(set);
}

double KernelProcess::run(std::span<const int> sets, int threads, AfterRun after) {
  return state_->run(sets, threads, after);
}

std::vector<std::byte> KernelProcess::output(int set, int index) {
  return state_->memory().output(set, index);
}

void KernelProcess::check_memory(int set) {
  if (const std::string damage = state_->memory().damage(set); !damage.empty()) throw PluginFailure(damage);
}

}  // namespace tandem
