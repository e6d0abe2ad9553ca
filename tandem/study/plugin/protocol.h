// What a KernelProcess and the process that runs its plugin share: a page of plain data, and two pipes.
//
// The plugin's process loads the plugin, fills in the reply and writes a byte. Then, for every byte it reads,
// it makes the calls of the request and writes a byte. plugin_host.py reads the same page; when the layout
// changes, change it there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/device/shared_buffer.h"

namespace tandem::detail {

struct SharedArray {
  std::int64_t offset =
      0;  // inputs: in the memory of inputs; outputs: in that of outputs; CUDA: in the buffer
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t channels = 0;
  std::int32_t type = 0;  // DType
  std::int32_t reserved = 0;
};

inline constexpr int max_shared_arrays = 2048, max_calls = 4096, max_function_name = 63, max_message = 511;

struct PluginPage {
  // Memory of the plugin's process, in huge pages, which shared memory rarely has: how much of it is asked
  // for, and where it is. 0: the arrays are in shared memory.
  std::int64_t private_bytes = 0;
  std::uint64_t private_address = 0;
  // Set at the start.
  std::int32_t input_count = 0;
  std::int32_t output_count = 0;
  std::int32_t sets = 0;
  char function[max_function_name + 1] = {};
  // The reply to loading.
  std::int32_t is_loaded = 0;  // 2: the plugin does not have the function
  std::int32_t is_cuda = 0;
  char message[max_message + 1] = {};  // why it is not loaded
  // CUDA: the buffer with all arrays.
  MemoryHandle buffer = {};
  // A request: calls on these sets, and the first return value that is not 0.
  std::int32_t threads = 1;
  std::int32_t call_count = 0;
  std::int32_t result = 0;
  std::int32_t calls[max_calls] = {};
  SharedArray arrays[max_shared_arrays] = {};  // of set 0: its inputs, then its outputs; of set 1: …
};
static_assert(std::is_trivially_copyable_v<PluginPage>);
static_assert(offsetof(PluginPage, arrays) % 8 == 0);

// Descriptors of the plugin's process.
struct PluginFds {
  int page = -1, inputs = -1, outputs = -1, requests = -1, replies = -1;
};

}  // namespace tandem::detail
