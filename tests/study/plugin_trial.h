// Plugins for tests: compiled from text, and run on four numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/core/write_file.h"
#include "tandem/files/scratch_folder.h"
#include "tandem/study/plugin/kernel_process.h"
#include "tandem/study/plugin/python.h"
#include "tests/paths.h"

namespace tandem {

inline PluginFile compile(const std::string& text, const std::string& name) {
  static const ScratchFolder folder;
  const std::filesystem::path path = folder.path() / name;
  write_file("test", path, text);
  return prepare_plugin(path);
}

inline KernelFormat four_numbers(const std::string& function) {
  const ArrayFormat array{.dtype = DType::i32, .rows = 2, .columns = 2};
  return {.function = function, .inputs = {array}, .outputs = {array}};
}

inline const KernelProcessOptions plugin_options{
    .program = program_file, .sandbox = {.allow_processes = true}, .timeout_s = 20};

inline std::vector<std::int32_t> to_numbers(const std::vector<std::byte>& bytes) {
  std::vector<std::int32_t> numbers(bytes.size() / sizeof(std::int32_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Runs the function on 1, 2, 3, 4.
class PluginTrial {
 public:
  PluginTrial(const PluginFile& file, const std::string& function,
              const KernelProcessOptions& options = plugin_options)
      : process_(file, four_numbers(function), options) {
    const std::int32_t values[] = {1, 2, 3, 4};
    process_.set_input(0, 0, std::as_bytes(std::span(values)));
    process_.poison_outputs(0);
  }
  std::vector<std::int32_t> result(int threads = 1) {
    const int sets[] = {0};
    process_.run(sets, threads);
    process_.check_memory(0);
    return to_numbers(process_.output(0, 0));
  }
  KernelProcess& process() { return process_; }

 private:
  KernelProcess process_;
};

using Numbers = std::vector<std::int32_t>;
inline const Numbers doubled{2, 4, 6, 8};

inline KernelProcessOptions with_huge_pages() {
  KernelProcessOptions huge = plugin_options;
  huge.huge_pages = true;
  return huge;
}

inline bool has_python() {
  try {
    python_host_command();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tandem
