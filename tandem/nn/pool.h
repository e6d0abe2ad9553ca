// Pooling as modules, for NHWC images.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/conv/pool.h"

namespace tandem {

/// max_pool2d() as a module: (n, height, width, channels) → (n, height', width', channels).
class MaxPool2d : public StatelessModule {
 public:
  /// Windows that do not overlap: MaxPool2d(2).
  explicit MaxPool2d(YX kernel) : MaxPool2d(kernel, {.stride = kernel}) {}
  MaxPool2d(YX kernel, const Window& window) : kernel_(kernel), window_(window) {}

  Tensor forward(const Tensor& x) override { return max_pool2d(x, kernel_, window_); }
  YX kernel() const { return kernel_; }
  const Window& window() const { return window_; }

 private:
  YX kernel_;
  Window window_;
};

/// avg_pool2d() as a module.
class AvgPool2d : public StatelessModule {
 public:
  /// Windows that do not overlap: AvgPool2d(2).
  explicit AvgPool2d(YX kernel) : AvgPool2d(kernel, {.stride = kernel}) {}
  AvgPool2d(YX kernel, const Window& window) : kernel_(kernel), window_(window) {}

  Tensor forward(const Tensor& x) override { return avg_pool2d(x, kernel_, window_); }
  YX kernel() const { return kernel_; }
  const Window& window() const { return window_; }

 private:
  YX kernel_;
  Window window_;
};

/// The mean over each image: (n, height, width, channels) → (n, channels).
class GlobalAvgPool2d : public StatelessModule {
 public:
  Tensor forward(const Tensor& x) override;
};

}  // namespace tandem
