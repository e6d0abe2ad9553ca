#include "tandem/ops/dropout_mask.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/dropout_mask_kernel.h"
#include "tandem/ops/elementwise.h"

namespace tandem::detail {

template <>
void dropout_mask_kernel<Backend::cpu>(const DropoutSampler& sampler, DType dtype, std::byte* out,
                                       ElementRange elements, std::int64_t* step, StreamView) {
  on_dtype(FloatTypes{}, dtype, "dropout_mask", [&]<class T>() {
    auto* mask = reinterpret_cast<T*>(out);
    const std::int64_t first = elements.first, last = elements.last;
    const std::int64_t first_block = first / 4;
    const T kept = convert<T>(sampler.kept_value), dropped = convert<T>(0.0f);
    parallel_for((last + 3) / 4 - first_block, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = first_block + begin; block < first_block + end; ++block) {
        const Words4 words = sampler.words(*step, block);
        for (std::int64_t i = std::max(4 * block, first); i < std::min(4 * block + 4, last); ++i)
          mask[i - first] = words.word[i % 4] < sampler.threshold ? dropped : kept;
      }
    });
  });
  ++*step;
}

}  // namespace tandem::detail

namespace tandem {

Tensor dropout_mask(const Shape& shape, Tensor& step, const DropoutOptions& options) {
  const Device device = common_device("dropout", {&step});
  check(options.probability >= 0 && options.probability < 1,
        "[dropout] expected a probability of 0 or more and less than 1, got {}", options.probability);
  check(step.dtype() == DType::i64 && step.numel() == 1,
        "[dropout] expected a step counter of one i64, got {} of {}", step.shape().to_string(),
        name_of(step.dtype()));
  check(is_floating(options.dtype), "[dropout] expected a floating dtype, got {}", name_of(options.dtype));
  constexpr std::int64_t max_elements = std::int64_t{1} << 34;
  check(shape.numel() <= max_elements, "[dropout] expected at most 2^34 elements, got shape {}",
        shape.to_string());
  check(options.first_element >= 0 && options.first_element <= max_elements - shape.numel(),
        "[dropout] expected elements from 0 to 2^34, got {} from {} on", shape.numel(),
        options.first_element);
  const detail::DropoutSampler sampler{.seed = options.seed,
                                       .layer = options.layer,
                                       .threshold = static_cast<std::uint64_t>(options.probability * 0x1p32),
                                       .kept_value = 1 / (1 - options.probability)};
  Tensor mask = Tensor::empty(shape, options.dtype, device);
  on_backend(device, "dropout", [&]<Backend B>() {
    detail::dropout_mask_kernel<B>(sampler, options.dtype, mask.bytes(),
                                   {options.first_element, options.first_element + mask.numel()},
                                   step.data<std::int64_t>(), current_stream(device));
  });
  return mask;
}

}  // namespace tandem
