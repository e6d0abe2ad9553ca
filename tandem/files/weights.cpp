#include "tandem/files/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/files/pth.h"
#include "tandem/files/read_file.h"
#include "tandem/text/utf8.h"

namespace tandem {

WeightFormat weight_format(std::string_view bytes) {
  // A header length whose upper bytes are 0, then a JSON object: no pickle starts like that.
  constexpr std::size_t brace_at = 8;
  return bytes.size() > brace_at && bytes[brace_at] == '{' && bytes[7] == '\0' ? WeightFormat::safetensors
                                                                               : WeightFormat::pth;
}

TensorFile parse_weights(std::string_view bytes, const std::string& name) {
  return weight_format(bytes) == WeightFormat::safetensors ? parse_safetensors(bytes, name)
                                                           : parse_pth(bytes, name);
}

TensorFile read_weights(const std::filesystem::path& path) {
  return parse_weights(read_file("weights", path, max_weight_bytes), path.string());
}

void check_finite(const TensorFile& file, const std::string& name) {
  for (const NamedTensor& named : file.tensors) {
    if (!is_floating(named.tensor.dtype())) continue;
    const Tensor tensor = named.tensor.cpu().contiguous();
    on_dtype(FloatTypes{}, tensor.dtype(), "weights", [&]<class T>() {
      const std::span<const T> values(tensor.data<T>(), static_cast<std::size_t>(tensor.numel()));
      const auto bad = std::ranges::find_if(
          values, [](T value) { return !std::isfinite(static_cast<ComputeType<T>>(value)); });
      if (bad != values.end())
        fail("[weights] {}: expected finite weights, got {} at element {} of tensor '{}'", name,
             static_cast<ComputeType<T>>(*bad), bad - values.begin(), one_line(named.name));
    });
  }
}

}  // namespace tandem
