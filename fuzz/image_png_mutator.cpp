// Changes the content of PNG files and then repairs the checksums of their chunks, which would end decoding
// otherwise.
#include <zlib.h>

#include <algorithm>

#include "fuzz/fuzz.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 16 == 0) return size;  // wrong checksums too
  const auto put = [](std::uint8_t* at, std::uint32_t value) {
    for (int i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
  };
  for (std::size_t at = 8; at + 12 <= size;) {  // length, name, content, checksum
    std::uint32_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | data[at + i];
    const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(length, size - at - 12));
    put(data + at, bytes);
    put(data + at + 8 + bytes, static_cast<std::uint32_t>(crc32(0, data + at + 4, 4 + bytes)));
    at += 12 + bytes;
  }
  return size;
}
