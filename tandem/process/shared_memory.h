// SharedMemory: memory that processes share through a descriptor (memfd). It has no name in the file system,
// so nothing is left behind however its users end. The size is checked against the machine, the cgroup and
// the limits of the process before allocating: memory that is not there would kill the process later, at its
// first page fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tandem/process/descriptor.h"

namespace tandem {

class SharedMemory {
 public:
  enum class Access { read, read_write };

  SharedMemory() = default;
  // Zeroed. An Error names `what` ("the loader's ring"), the bytes it needs, what is available, and `advice`
  // of the caller ("lower prefetch").
  SharedMemory(std::int64_t bytes, const std::string& what, const std::string& advice);
  // Maps the memory behind a descriptor another process made; takes ownership of the descriptor.
  SharedMemory(Descriptor file, Access access);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  int fd() const { return file_.get(); }

 private:
  Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tandem
