// Makes the length of the header that of the JSON text, and the data as long as the tensors say.
#include "fuzz/fuzz_mutator.h"

namespace {

// The end of the JSON object that begins at byte 8; the end of the input if it has none.
std::size_t header_end(const std::string& input) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 8; i < input.size(); ++i) {
    if (quoted) {
      if (input[i] == '\\') ++i;
      if (i < input.size() && input[i] == '"' && input[i - 1] != '\\') quoted = false;
    } else if (input[i] == '"') {
      quoted = true;
    } else if (input[i] == '{') {
      ++depth;
    } else if (input[i] == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return input.size();
}

// The largest number after "data_offsets".
std::size_t data_size(const std::string& header) {
  std::size_t largest = 0;
  for (std::size_t at = header.find("data_offsets"); at != std::string::npos;
       at = header.find("data_offsets", at + 1))
    for (std::size_t i = at; i < header.size() && header[i] != ']'; ++i) {
      std::size_t number = 0;
      for (; i < header.size() && header[i] >= '0' && header[i] <= '9' && number < 1000; ++i)
        number = 10 * number + static_cast<std::size_t>(header[i] - '0');
      largest = std::max(largest, number);
      if (i < header.size() && header[i] == ']') break;
    }
  return largest;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  std::string input = mutated(data, size, max_size);
  if (input.size() < 9 || seed % 8 == 0) return input.size();
  const std::size_t end = header_end(input);
  put_little_endian(reinterpret_cast<std::uint8_t*>(input.data()), end - 8, 8);
  if (seed % 4 != 0) input.resize(end + std::min<std::size_t>(data_size(input.substr(8, end - 8)), 512));
  return put_input(data, max_size, input);
}
