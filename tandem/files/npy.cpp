#include "tandem/files/npy.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "tandem/core/check.h"

namespace tandem {
namespace {

void check_dtype(const char* op, const Tensor& tensor) {
  check(tensor.dtype() == DType::f32, "[{}] expected a tensor of f32, got {}", op, name_of(tensor.dtype()));
}

}  // namespace

std::string to_npy(const Tensor& tensor) {
  static_assert(std::endian::native == std::endian::little);
  check_dtype("to_npy", tensor);
  std::string shape;
  for (int i = 0; i < tensor.rank(); ++i) shape += fmt::format("{}, ", tensor.size(i));
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr std::size_t prefix = 10, alignment = 64;  // the data begins at a multiple of 64
  header.append(alignment - (prefix + header.size() + 1) % alignment, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const std::vector<float> values = tensor.to_vector<float>();
  const std::size_t start = bytes.size();
  bytes.resize(start + values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data() + start, values.data(), values.size() * sizeof(float));
  return bytes;
}

std::string to_csv(const Tensor& matrix) {
  check_dtype("to_csv", matrix);
  check(matrix.rank() == 2, "[to_csv] expected a matrix, got {} dimensions", matrix.rank());
  const std::vector<float> values = matrix.to_vector<float>();
  const std::int64_t columns = matrix.size(1);
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool last = static_cast<std::int64_t>(i % static_cast<std::size_t>(columns)) == columns - 1;
    fmt::format_to(std::back_inserter(text), "{}{}", values[i], last ? '\n' : ',');
  }
  return text;
}

}  // namespace tandem
