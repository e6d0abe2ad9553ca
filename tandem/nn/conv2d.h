// A convolution layer. The weight is held as the operation wants it, (out, kernel y, kernel x, in), and goes
// into files as PyTorch has it, (out, in, kernel y, kernel x).
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/conv2d.h"
#include "tandem/ops/random.h"

namespace tandem {

struct Conv2dLayerOptions {
  YX kernel = {3, 3};
  Window window = {};
  std::int64_t groups = 1;
  bool bias = true;
  RandomOptions random = {};  // of the weight
};

// "weight" normal with variance 2 / (out · kernel size), as residual networks are begun; "bias" (out) zero.
class Conv2d : public Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options = {});

  Tensor forward(const Tensor& x) override;  // (n, height, width, in) → (n, height', width', out)

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined when there is none
  const Conv2dOptions& options() const { return options_; }

 private:
  Conv2dOptions options_;
  Tensor weight_, bias_;
};

}  // namespace tandem
