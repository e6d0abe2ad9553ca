// Idx files, raw or compressed: a raw one is exactly its header and its elements.
#include "fuzz/fuzz_file.h"
#include "fuzz/fuzz_tensors.h"
#include "tandem/files/gzip.h"
#include "tandem/files/idx.h"

namespace tandem {
namespace {

std::string written(const Tensor& tensor, char type) {
  std::string bytes{0, 0, type, static_cast<char>(tensor.rank())};
  for (const std::int64_t size : tensor.shape())
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xFF);
  const std::string_view elements = tensor.numel() == 0 ? std::string_view() : bytes_of(tensor);
  const std::size_t each = size_of(tensor.dtype());
  for (std::size_t at = 0; at < elements.size(); at += each)
    bytes.append(elements.substr(at, each).rbegin(), elements.substr(at, each).rend());
  return bytes;
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto tensor = result_or_none([&] { return parse_idx(input, "file"); });
  if (!tensor) return 0;
  const std::string raw = is_gzip(input) ? gunzip(input, std::size_t{1} << 31, "file") : std::string(input);
  require(written(*tensor, raw[2]) == raw);
  require(written(read_idx(fuzz_file(input)), raw[2]) == raw);
  const OutputFile output(".idx");
  const bool is_written = result_or_none([&] { return write_idx(output.path(), *tensor), 0; }).has_value();
  require(is_written == (tensor->dtype() == DType::u8 && tensor->rank() >= 1));
  if (is_written) require(written(read_idx(output.path()), raw[2]) == raw);
  return 0;
}
