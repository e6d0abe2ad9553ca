// SharedMemory: memory that processes share by a descriptor (memfd). It has no name anywhere, so nothing is
// left behind however its users end. Sizes are checked against what the machine, the cgroup and the limits of
// the process allow before anything is taken: memory that is not there would end the process later, at its
// first touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "tandem/data/descriptor.h"

namespace tandem {

class SharedMemory {
 public:
  enum class Access { read, read_write };

  SharedMemory() = default;
  // Zeroed. An Error names `what` ("the ring"), what it needs, what there is, and `advice` ("lower --ahead").
  SharedMemory(std::int64_t bytes, const std::string& what, const std::string& advice);
  // The memory behind a descriptor another process made; takes the descriptor over.
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

// What the memory limits of a process's cgroups leave, caches that can be dropped counted as free; a very
// large number where there is no limit. `membership` is the text of /proc/self/cgroup, `root` stands for
// /sys/fs/cgroup.
std::int64_t cgroup_free_bytes(const std::string& membership, const std::filesystem::path& root);

}  // namespace tandem
