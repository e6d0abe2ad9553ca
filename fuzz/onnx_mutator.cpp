// Changes one field inside the nested messages and repairs the lengths of all around it.
#include <vector>

#include "fuzz/fuzz_mutator.h"

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

std::uint64_t take_varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes[at++]);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::string changed(std::string bytes) {
  const std::size_t before = bytes.size(), room = before + 16;
  bytes.resize(room);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), before, room));
  return bytes;
}

// Goes into fields with a length, as `choices` says, and changes the contents of the last one.
std::string changed_inside(const std::string& message, std::uint64_t choices) {
  struct Part {
    std::size_t length_at, begin, end;
  };
  std::vector<Part> parts;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t type = take_varint(message, at) & 7;
    if (type == 0) take_varint(message, at);
    if (type == 1) at += 8;
    if (type == 5) at += 4;
    if (type == 3 || type == 4 || type > 5) break;
    if (type != 2) continue;
    const std::size_t length_at = at;
    const std::uint64_t length = take_varint(message, at);
    if (length > message.size() - at) break;
    parts.push_back({length_at, at, at + length});
    at += length;
  }
  if (parts.empty() || choices % 4 == 3) return changed(message);
  const Part& part = parts[choices / 4 % parts.size()];
  const std::string inner =
      changed_inside(message.substr(part.begin, part.end - part.begin), choices / 4 / parts.size());
  return message.substr(0, part.length_at) + varint(inner.size()) + inner + message.substr(part.end);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  if (seed % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string input(reinterpret_cast<const char*>(data), size);
  return put_input(data, max_size, changed_inside(input, std::uint64_t{seed} * 0x9e3779b97f4a7c15 >> 20));
}
