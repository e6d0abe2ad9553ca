// Changes PNG files, or the rows that they contain, and repairs the lengths and checksums of their chunks,
// which would end decoding otherwise.
#include "fuzz/fuzz_zip.h"

namespace tandem {
namespace {

std::uint32_t big_endian(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
}

void put_big_endian(std::uint8_t* at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

// A chunk is its length, name, content and checksum. Calls f(chunk, size of the content).
template <class F>
void for_each_chunk(std::uint8_t* data, std::size_t size, const F& f) {
  for (std::size_t at = 8; at + 12 <= size;) {
    const std::size_t bytes = std::min<std::size_t>(big_endian(data + at), size - at - 12);
    f(data + at, bytes);
    at += 12 + bytes;
  }
}

void repair_chunks(std::uint8_t* data, std::size_t size) {
  for_each_chunk(data, size, [](std::uint8_t* chunk, std::size_t bytes) {
    put_big_endian(chunk, static_cast<std::uint32_t>(bytes));
    put_big_endian(chunk + 8 + bytes, crc_of(chunk + 4, 4 + bytes));
  });
}

// The file with its rows changed and stored in one chunk without compression; empty without rows.
std::string with_changed_rows(std::uint8_t* data, std::size_t size) {
  std::string before(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 8)), packed, after;
  for_each_chunk(data, size, [&](const std::uint8_t* chunk, std::size_t bytes) {
    const std::string whole(reinterpret_cast<const char*>(chunk), 12 + bytes);
    if (whole.compare(4, 4, "IDAT") == 0)
      packed += whole.substr(8, bytes);
    else
      (packed.empty() ? before : after) += whole;
  });
  std::string rows =
      inflated(reinterpret_cast<const std::uint8_t*>(packed.data()), packed.size(), MAX_WBITS, 1 << 13);
  if (rows.empty()) return {};
  rows.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(rows.data()), rows.size(), rows.size()));
  std::string stored(compressBound(rows.size()), '\0');
  uLongf length = stored.size();
  compress2(reinterpret_cast<Bytef*>(stored.data()), &length, reinterpret_cast<const Bytef*>(rows.data()),
            rows.size(), 1);
  stored.resize(length);
  std::string head(4, '\0');
  put_big_endian(reinterpret_cast<std::uint8_t*>(head.data()), static_cast<std::uint32_t>(length));
  return before + head + "IDAT" + stored + std::string(4, '\0') + after;
}

}  // namespace
}  // namespace tandem

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  std::string changed;
  if (seed % 8 == 1) changed = with_changed_rows(data, size);
  size = changed.empty() || changed.size() > max_size ? LLVMFuzzerMutate(data, size, max_size)
                                                      : put_input(data, max_size, changed);
  if (seed % 16 != 0) repair_chunks(data, size);  // wrong checksums too
  return size;
}
