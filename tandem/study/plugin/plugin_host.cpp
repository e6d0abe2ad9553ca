#include "tandem/study/plugin/plugin_host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/device/device.h"
#include "tandem/files/read_file.h"
#include "tandem/plugin.h"
#include "tandem/process/descriptor.h"
#include "tandem/process/sandbox.h"
#include "tandem/process/shared_memory.h"
#include "tandem/study/plugin/protocol.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

using Kernel = int (*)(const TandemCall* call);
constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;

// Waits for a byte; false at the end of the pipe. Reads again and again for a while before it sleeps: the
// plugin's own threads may be waiting in loops, and a thread that wakes up can get the CPU of one of them and
// share it for milliseconds, although another is free.
bool read_byte(int fd) {
  constexpr double awake_ms = 20;
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const Stopwatch watch;
  while (true) {
    char byte = 0;
    const ssize_t count = ::read(fd, &byte, 1);
    if (count >= 0) return count == 1;
    if (errno != EAGAIN && errno != EINTR) return false;
    pollfd request{.fd = fd, .events = POLLIN, .revents = 0};
    if (watch.elapsed_ms() > awake_ms) ::poll(&request, 1, -1);
  }
}

void write_byte(int fd) {
  while (::write(fd, "", 1) < 0 && errno == EINTR) {
  }
}

class MissingFunction : public Error {
 public:
  using Error::Error;
};

struct Loaded {
  Kernel kernel = nullptr;
  bool is_cuda = false;
};

// A kernel is the user's own. The program exports the functions of Tandem, for plugins with models, and one
// of them would be a fast kernel.
void check_own_work(const char* path) {
  const std::string bytes = read_file("plugin", path, std::uint64_t{1} << 30);
  check(bytes.find("_ZN6tandem") == bytes.npos && bytes.find("_ZNK6tandem") == bytes.npos,
        "uses functions of Tandem; a kernel may not");
}

Loaded load_plugin(const char* path, const std::string& function) {
  if (std::filesystem::exists(path)) check_own_work(path);
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("cannot be loaded: {}", ::dlerror());
  const auto find = [&](const std::string& name) { return ::dlsym(library, name.c_str()); };
  const auto version = reinterpret_cast<int (*)()>(find("tandem_plugin_version"));
  check(version != nullptr, "has no function tandem_plugin_version");
  const int number = version();
  check(number == TANDEM_PLUGIN_VERSION,
        "was made for version {} of the plugin interface, this is version {}", number, TANDEM_PLUGIN_VERSION);
  const auto kernel = reinterpret_cast<Kernel>(find("tandem_" + function));
  if (!kernel) throw MissingFunction(fmt::format("has no function tandem_{}", function));
  const auto cuda = reinterpret_cast<int (*)()>(find("tandem_plugin_cuda"));
  return {.kernel = kernel, .is_cuda = cuda != nullptr && cuda() != 0};
}

class Host {
 public:
  Host(const detail::PluginFds& fds, const char* library)
      : page_memory_(Descriptor(fds.page), SharedMemory::Access::read_write),
        inputs_(Descriptor(fds.inputs), SharedMemory::Access::read),
        outputs_(Descriptor(fds.outputs), SharedMemory::Access::read_write),
        page_(*reinterpret_cast<detail::PluginPage*>(page_memory_.data())) {
    try {
      loaded_ = load_plugin(library, page_.function);
      page_.is_cuda = loaded_.is_cuda;
      page_.private_address = loaded_.is_cuda ? 0 : allocate(page_.private_bytes);
      page_.is_loaded = 1;
    } catch (const std::exception& error) {
      page_.is_loaded = dynamic_cast<const MissingFunction*>(&error) ? 2 : 0;
      std::strncpy(page_.message, error.what(), detail::max_message);
    }
  }

  void answer() {
    if (calls_.empty()) make_calls();
    page_.result = 0;
    for (int i = 0; i < page_.call_count; ++i) {
      TandemCall& call = calls_[static_cast<std::size_t>(page_.calls[i])];
      call.threads = page_.threads;
      const int result = loaded_.kernel(&call);
      if (result != 0 && page_.result == 0) page_.result = result;
    }
    if (loaded_.is_cuda) synchronize_default_stream({Backend::cuda, 0});
  }

 private:
  // Memory in huge pages, which is not freed: the process ends with it. 0 when there is none.
  static std::uint64_t allocate(std::int64_t bytes) {
    if (bytes <= 0) return 0;
    const std::size_t size = static_cast<std::size_t>(bytes) + huge_page;
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    ::madvise(memory, size, MADV_HUGEPAGE);
    return (reinterpret_cast<std::uint64_t>(memory) + huge_page - 1) / huge_page * huge_page;
  }

  // The arrays as the plugin gets them, made at the first request: the page is complete then.
  void make_calls() {
    if (loaded_.is_cuda) opened_ = std::make_unique<OpenedBuffer>(page_.buffer, Device{Backend::cuda, 0});
    const int per_set = page_.input_count + page_.output_count;
    arrays_.reserve(static_cast<std::size_t>(page_.sets) * static_cast<std::size_t>(per_set));
    for (int set = 0; set < page_.sets; ++set) {
      TandemCall call{};
      call.input_count = page_.input_count;
      call.output_count = page_.output_count;
      call.inputs = arrays_.data() + arrays_.size();
      call.outputs = arrays_.data() + arrays_.size() + page_.input_count;
      for (int i = 0; i < per_set; ++i) {
        const detail::SharedArray& array = page_.arrays[set * per_set + i];
        std::byte* memory = opened_                 ? opened_->data()
                            : page_.private_address ? reinterpret_cast<std::byte*>(page_.private_address)
                            : i < page_.input_count ? inputs_.data()
                                                    : outputs_.data();
        arrays_.push_back({memory + array.offset, array.rows, array.columns, array.channels, array.type, 0});
      }
      calls_.push_back(call);
    }
  }

  SharedMemory page_memory_, inputs_, outputs_;
  detail::PluginPage& page_;
  Loaded loaded_;
  std::unique_ptr<OpenedBuffer> opened_;
  std::vector<TandemArray> arrays_;
  std::vector<TandemCall> calls_;
};

int run_host(const std::vector<std::string>& arguments) {
  check(arguments.size() >= 6, "[plugin] expected to be started by a study, got {} arguments",
        arguments.size());
  const auto fd = [&](std::size_t i) { return std::atoi(arguments[i].c_str()); };
  const detail::PluginFds fds{
      .page = fd(0), .inputs = fd(1), .outputs = fd(2), .requests = fd(3), .replies = fd(4)};
  enter_sandbox(SandboxOptions::parse({arguments.begin() + 6, arguments.end()}));
  Host host(fds, arguments[5].c_str());
  write_byte(fds.replies);
  while (read_byte(fds.requests)) {
    host.answer();
    write_byte(fds.replies);
  }
  return 0;
}

int run_confined(const std::vector<std::string>& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  check(arguments.end() - separator > 1, "[sandbox] expected a program after --");
  enter_sandbox(SandboxOptions::parse({arguments.begin(), separator}));
  std::vector<char*> words;
  for (auto word = separator + 1; word != arguments.end(); ++word)
    words.push_back(const_cast<char*>(word->c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  fail("[sandbox] cannot start {}: {}", words[0], errno_message(errno));
}

}  // namespace

std::optional<int> run_plugin_if_asked(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command != "plugin-host" && command != "confined") return std::nullopt;
  try {
    const std::vector<std::string> arguments(argv + 2, argv + argc);
    return command == "confined" ? run_confined(arguments) : run_host(arguments);
  } catch (const std::exception& error) {
    print_message("tandem: error: {}\n", error.what());
    return 1;
  }
}

}  // namespace tandem
