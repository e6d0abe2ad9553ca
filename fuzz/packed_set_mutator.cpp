// Repairs the checksums of the header and the index, and often the size of the file.
#include "fuzz/fuzz_mutator.h"
#include "tandem/files/crc32c.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  constexpr std::size_t header_bytes = 64, crc_at = 12, file_bytes_at = 16, index_at = 24, index_crc_at = 56;
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size < header_bytes || seed % 16 == 0) return size;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (seed % 4 != 0) put_little_endian(data + file_bytes_at, size, 8);
  if (const std::uint64_t index = little_endian(data + index_at, 8); index <= size)
    put_little_endian(data + index_crc_at, crc32c(input.substr(index)), 4);
  put_little_endian(data + crc_at, 0, 4);
  put_little_endian(data + crc_at, crc32c(input.substr(0, header_bytes)), 4);
  return size;
}
