#include "tandem/study/plugin/array_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/study/plugin/kernel_process.h"

namespace tandem::detail {
namespace {

constexpr std::byte guard_byte{0x5a}, poison_byte{0xa5};
constexpr std::size_t page_bytes = 4096;
constexpr Device plugin_gpu{Backend::cuda, 0};

template <class T>
void fill_with(const ArrayFormat& format, std::byte* memory, T value) {
  for (std::int64_t i = 0; i < format.elements(); ++i)
    std::memcpy(memory + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

void fill_poison(const ArrayFormat& format, std::byte* memory) {
  if (format.dtype == DType::f32)
    fill_with(format, memory, std::numeric_limits<float>::quiet_NaN());
  else if (format.dtype == DType::f64)
    fill_with(format, memory, std::numeric_limits<double>::quiet_NaN());
  else
    std::memset(memory, static_cast<int>(poison_byte), format.bytes());
}

}  // namespace

std::size_t ArrayMemory::Layout::add(std::size_t bytes) {
  const std::size_t offset = end_;
  end_ = (offset + bytes + guard_bytes + page_bytes - 1) / page_bytes * page_bytes;
  return offset;
}

ArrayMemory::ArrayMemory(const KernelFormat& format) : format_(format) {
  check(format_.sets > 0 && format_.sets * (input_count() + output_count()) <= max_shared_arrays,
        "[plugin] expected up to {} arrays, got {} sets of {}", max_shared_arrays, format_.sets,
        input_count() + output_count());
  for (int set = 0; set < format_.sets; ++set) {
    for (const ArrayFormat& array : format_.inputs)
      input_offsets_.push_back(input_layout_.add(array.bytes()));
    for (const ArrayFormat& array : format_.outputs)
      output_offsets_.push_back(output_layout_.add(array.bytes()));
  }
  inputs_ = SharedMemory(static_cast<std::int64_t>(input_layout_.bytes()), "the inputs of a plugin",
                         "choose smaller cases");
  outputs_ = SharedMemory(static_cast<std::int64_t>(output_layout_.bytes()), "the outputs of a plugin",
                          "choose smaller cases");
  for (const SharedMemory* memory : {&inputs_, &outputs_})  // where the kernel has them for shared memory
    ::madvise(memory->data(), memory->size(), MADV_HUGEPAGE);
  std::memset(outputs_.data(), static_cast<int>(guard_byte), outputs_.size());
}

Descriptor ArrayMemory::open_inputs() const {
  Descriptor file(::open(fmt::format("/proc/self/fd/{}", inputs_.fd()).c_str(), O_RDONLY | O_CLOEXEC));
  check(static_cast<bool>(file), "[plugin] cannot open shared memory: {}", errno_message(errno));
  return file;
}

void ArrayMemory::describe(PluginPage& page) const {
  page.input_count = input_count();
  page.output_count = output_count();
  page.sets = format_.sets;
  SharedArray* next = page.arrays;
  const auto add = [&](const ArrayFormat& array, std::size_t offset) {
    *next++ = {.offset = static_cast<std::int64_t>(offset),
               .rows = array.rows,
               .columns = array.columns,
               .channels = array.channels,
               .type = static_cast<std::int32_t>(array.dtype)};
  };
  for (int set = 0; set < format_.sets; ++set) {
    for (int i = 0; i < input_count(); ++i) add(input_format(i), input_offset(set, i));
    for (int i = 0; i < output_count(); ++i)
      add(output_format(i), is_remote() ? remote_offset(output_offset(set, i)) : output_offset(set, i));
  }
}

void ArrayMemory::move_to_gpu(PluginPage& page) {
  gpu_.emplace(bytes(), plugin_gpu);
  gpu_->write(remote_offset(0), outputs_.bytes());
  page.buffer = gpu_->handle();
  describe(page);
}

void ArrayMemory::move_to_process(const ProcessMemory& memory, PluginPage& page) {
  if (!memory.write(remote_offset(0), outputs_.bytes())) {
    page.private_address = 0;
    return;
  }
  process_ = memory;
  describe(page);
}

void ArrayMemory::write_remote(std::size_t offset, std::span<const std::byte> values) {
  if (gpu_)
    gpu_->write(offset, values);
  else if (!process_->write(offset, values))
    throw PluginFailure("has no memory for its arrays any more");
}

void ArrayMemory::read_remote(std::size_t offset, std::span<std::byte> values) const {
  if (gpu_)
    gpu_->read(offset, values);
  else if (!process_->read(offset, values))
    throw PluginFailure("has no memory for its arrays any more");
}

void ArrayMemory::set_input(int set, int index, std::span<const std::byte> values) {
  expect(values.size() == input_format(index).bytes());
  std::memcpy(inputs_.data() + input_offset(set, index), values.data(), values.size());
  if (is_remote()) write_remote(input_offset(set, index), values);
}

void ArrayMemory::poison_outputs(int set) {
  for (int i = 0; i < output_count(); ++i) {
    std::byte* memory = outputs_.data() + output_offset(set, i);
    fill_poison(output_format(i), memory);
    if (is_remote()) write_remote(remote_offset(output_offset(set, i)), {memory, output_format(i).bytes()});
  }
}

void ArrayMemory::fetch_outputs(std::span<const int> sets) {
  if (!is_remote()) return;
  std::vector<int> distinct(sets.begin(), sets.end());
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const int set : distinct)
    for (int i = 0; i < output_count(); ++i) {
      const std::size_t offset = output_offset(set, i) - guard_bytes;
      read_remote(remote_offset(offset),
                  {outputs_.data() + offset, output_format(i).bytes() + 2 * guard_bytes});
    }
}

std::vector<std::byte> ArrayMemory::output(int set, int index) const {
  const std::byte* memory = outputs_.data() + output_offset(set, index);
  return {memory, memory + output_format(index).bytes()};
}

const char* ArrayMemory::damage(int set) {
  const auto is_guard = [](const std::byte* memory) {
    return std::all_of(memory, memory + guard_bytes, [](std::byte byte) { return byte == guard_byte; });
  };
  for (int i = 0; i < output_count(); ++i) {
    const std::byte* memory = outputs_.data() + output_offset(set, i);
    if (!is_guard(memory - guard_bytes) || !is_guard(memory + output_format(i).bytes()))
      return "wrote outside of its outputs";
  }
  return is_remote() && inputs_changed(set) ? "changed its inputs" : "";
}

std::size_t ArrayMemory::input_offset(int set, int i) const {
  return input_offsets_.at(static_cast<std::size_t>(set * input_count() + i));
}

std::size_t ArrayMemory::output_offset(int set, int i) const {
  return output_offsets_.at(static_cast<std::size_t>(set * output_count() + i));
}

// Only shared memory is write-protected.
bool ArrayMemory::inputs_changed(int set) {
  for (int i = 0; i < input_count(); ++i) {
    std::vector<std::byte> now(input_format(i).bytes());
    read_remote(input_offset(set, i), now);
    if (!std::equal(now.begin(), now.end(), inputs_.data() + input_offset(set, i))) return true;
  }
  return false;
}

}  // namespace tandem::detail
