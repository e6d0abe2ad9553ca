// 2-D convolution. In memory the weight is (out, kernel y, kernel x, in), as conv2d() expects it; in state
// dicts and files it is (out, in, kernel y, kernel x), as in PyTorch.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/random.h"

namespace tandem {

struct Conv2dLayerOptions {
  YX kernel = {3, 3};
  Window window = {};
  std::int64_t groups = 1;
  bool bias = true;
  RandomOptions random = {};  ///< initial weight: seed, stream, dtype and device
};

/// "weight" starts normal with variance 2 / (out · kernel size), the usual choice for residual networks;
/// "bias" (out) starts at zero. Throws Error for sizes below 1 or not divisible by `groups`.
class Conv2d : public Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options = {});

  Conv2d(Conv2d&& other) noexcept;

  /// (n, height, width, in) → (n, height', width', out)
  Tensor forward(const Tensor& x) override;

  const Tensor& weight() const { return weight_; }
  /// Undefined without a bias.
  const Tensor& bias() const { return bias_; }
  const Conv2dOptions& options() const { return options_; }

 private:
  Conv2dOptions options_;
  Tensor weight_, bias_;
};

}  // namespace tandem
