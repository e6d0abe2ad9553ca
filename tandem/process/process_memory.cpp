#include "tandem/process/process_memory.h"

#include <sys/uio.h>

#include <algorithm>

namespace tandem {
namespace {

// Moves all bytes with calls of `move`, which may stop early.
template <class Move>
bool move_all(std::uint64_t address, std::byte* here, std::size_t bytes, Move&& move) {
  constexpr std::size_t max_bytes = std::size_t{1} << 30;  // a call moves less than 2 GiB
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, max_bytes);
    const iovec local{.iov_base = here, .iov_len = part};
    const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = part};
    const ssize_t count = move(&local, &remote);
    if (count <= 0) return false;
    here += count;
    address += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

bool ProcessMemory::write(std::size_t offset, std::span<const std::byte> values) const {
  return move_all(address_ + offset, const_cast<std::byte*>(values.data()), values.size(),
                  [&](const iovec* local, const iovec* remote) {
                    return ::process_vm_writev(pid_, local, 1, remote, 1, 0);
                  });
}

bool ProcessMemory::read(std::size_t offset, std::span<std::byte> values) const {
  return move_all(address_ + offset, values.data(), values.size(),
                  [&](const iovec* local, const iovec* remote) {
                    return ::process_vm_readv(pid_, local, 1, remote, 1, 0);
                  });
}

}  // namespace tandem
