// The memory of a child process, read and written from here.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

// A block of memory at `address` of the process `pid`.
class ProcessMemory {
 public:
  ProcessMemory(pid_t pid, std::uint64_t address) : pid_(pid), address_(address) {}

  // False when the kernel does not allow it, or when not all of the bytes are there.
  bool write(std::size_t offset, std::span<const std::byte> values) const;
  bool read(std::size_t offset, std::span<std::byte> values) const;

 private:
  pid_t pid_;
  std::uint64_t address_;
};

}  // namespace tandem
