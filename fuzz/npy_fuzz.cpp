// Files for other tools: NumPy's header says what follows, and CSV gives the same bits back. The input is
// the number of columns and the elements.
#include <cstring>
#include <vector>

#include "fuzz/fuzz.h"
#include "tandem/files/npy.h"
#include "tandem/text/parse_number.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  if (size < 1) return 0;
  const std::int64_t columns = 1 + data[0] % 8, rows = static_cast<std::int64_t>((size - 1) / 4) / columns;
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  if (!values.empty()) std::memcpy(values.data(), data + 1, 4 * values.size());
  const Tensor matrix = Tensor::from(values, {rows, columns});
  const std::string npy = to_npy(matrix), csv = to_csv(matrix);
  const std::size_t begin = npy.size() - 4 * values.size();
  require(begin % 64 == 0 && npy[begin - 1] == '\n' && npy.starts_with("\x93NUMPY\x01"));
  require(begin == 10 + static_cast<unsigned char>(npy[8]) + 256u * static_cast<unsigned char>(npy[9]));
  require(values.empty() || std::memcmp(npy.data() + begin, values.data(), 4 * values.size()) == 0);
  std::string_view rest = csv;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t end = rest.find_first_of(",\n");
    require(end != std::string_view::npos && (rest[end] == '\n') == (i % static_cast<std::size_t>(columns) ==
                                                                     static_cast<std::size_t>(columns) - 1));
    const auto number = parse_number<float>(rest.substr(0, end));
    require(number && (*number == values[i] || (*number != *number && values[i] != values[i])));
    rest.remove_prefix(end + 1);
  }
  require(rest.empty());
  return 0;
}
