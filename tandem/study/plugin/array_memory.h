// ArrayMemory: the inputs and outputs of a plugin, in memory that its process maps, too. Inputs are mapped
// without write access there; outputs have guards around them. For a CUDA plugin they are in device memory
// that both processes have opened, or, if asked for, in huge pages of the plugin's process; the shared memory
// then holds this side's copies.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tandem/device/shared_buffer.h"
#include "tandem/process/descriptor.h"
#include "tandem/process/process_memory.h"
#include "tandem/process/shared_memory.h"
#include "tandem/study/plugin/kernel_format.h"
#include "tandem/study/plugin/protocol.h"

namespace tandem::detail {

class ArrayMemory {
 public:
  // Throws Error when there is not enough memory.
  explicit ArrayMemory(const KernelFormat& format);

  // For the plugin's process: a descriptor through which inputs can only be read, and one for outputs.
  Descriptor open_inputs() const;
  int outputs_fd() const { return outputs_.fd(); }
  // Where the arrays are.
  void describe(PluginPage& page) const;
  // Moves the arrays to the GPU. Throws Error when its memory does not suffice.
  void move_to_gpu(PluginPage& page);
  // The bytes that the arrays take in the memory of the plugin's process.
  std::size_t bytes() const { return input_layout_.bytes() + output_layout_.bytes(); }
  // Moves them there. Where the kernel does not allow it they stay in shared memory, and the page says so.
  void move_to_process(const ProcessMemory& memory, PluginPage& page);

  void set_input(int set, int index, std::span<const std::byte> values);
  void poison_outputs(int set);
  // Copies the outputs of these sets to this side if they are elsewhere. After run(), before output().
  void fetch_outputs(std::span<const int> sets);
  std::vector<std::byte> output(int set, int index) const;
  // What is wrong: "wrote outside of its outputs", "changed its inputs"; empty when nothing is.
  const char* damage(int set);

 private:
  // A position for every array, with a guard before and behind it.
  class Layout {
   public:
    std::size_t add(std::size_t bytes);
    std::size_t bytes() const { return end_; }

   private:
    std::size_t end_ = guard_bytes;
  };

  static constexpr std::size_t guard_bytes = 4096;

  int input_count() const { return static_cast<int>(format_.inputs.size()); }
  int output_count() const { return static_cast<int>(format_.outputs.size()); }
  const ArrayFormat& input_format(int i) const { return format_.inputs.at(static_cast<std::size_t>(i)); }
  const ArrayFormat& output_format(int i) const { return format_.outputs.at(static_cast<std::size_t>(i)); }
  std::size_t input_offset(int set, int i) const;
  std::size_t output_offset(int set, int i) const;
  // The position elsewhere, where outputs follow all inputs.
  std::size_t remote_offset(std::size_t output_offset) const { return input_layout_.bytes() + output_offset; }
  bool is_remote() const { return gpu_ || process_; }
  void write_remote(std::size_t offset, std::span<const std::byte> values);
  void read_remote(std::size_t offset, std::span<std::byte> values) const;
  bool inputs_changed(int set);

  KernelFormat format_;
  Layout input_layout_, output_layout_;
  std::vector<std::size_t> input_offsets_, output_offsets_;
  SharedMemory inputs_, outputs_;
  std::optional<SharedBuffer> gpu_;
  std::optional<ProcessMemory> process_;
};

}  // namespace tandem::detail
