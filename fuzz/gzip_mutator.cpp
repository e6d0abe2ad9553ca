// Changes one member and writes the CRC and the length of its contents after it.
#include "fuzz/fuzz_zip.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  size = LLVMFuzzerMutate(data, size, max_size);
  constexpr std::size_t header = 10, trailer = 8;
  if (seed % 8 == 0 || size < header + trailer || data[3] != 0) return size;  // a header with a name or more
  const std::string contents = inflated(data + header, size - header - trailer, -MAX_WBITS);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(contents.data());
  put_little_endian(data + size - 8, crc_of(bytes, contents.size()), 4);
  put_little_endian(data + size - 4, contents.size(), 4);
  return size;
}
