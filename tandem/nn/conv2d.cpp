#include "tandem/nn/conv2d.h"

#include <cmath>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/fill.h"

namespace tandem {

Conv2d::Conv2d(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options)
    : options_{.window = options.window, .groups = options.groups} {
  check(in > 0 && out > 0 && options.groups > 0 && in % options.groups == 0 && out % options.groups == 0,
        "[conv2d] expected channel counts of 1 or more divisible by {} groups, got {} and {}", options.groups,
        in, out);
  const auto [y, x] = options.kernel;
  check(y > 0 && x > 0, "[conv2d] expected a kernel of at least 1x1, got {}x{}", y, x);
  const double deviation = std::sqrt(2.0 / static_cast<double>(out * y * x));
  // Sampled in file order, so that the initial values do not depend on the layout in memory.
  weight_ = normal({out, in / options.groups, y, x}, 0, deviation, options.random)
                .permute({0, 2, 3, 1})
                .contiguous();
  add_parameter("weight", weight_, {0, 3, 1, 2});
  if (!options.bias) return;
  bias_ = zeros({out}, options.random.dtype, options.random.device);
  add_parameter("bias", bias_);
}

Conv2d::Conv2d(Conv2d&& other) noexcept
    : Module(), options_(other.options_), weight_(std::move(other.weight_)), bias_(std::move(other.bias_)) {
  take_registrations(other, {&weight_, &bias_});
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight_, bias_, options_);
}

}  // namespace tandem
