// Weight initialization from the counter-based generator. Values are sampled on the CPU and copied, so that
// all devices start from the same bits. Each parameter of a network uses its own stream of the seed.
#pragma once

#include "tandem/ops/random.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// Xavier (Glorot) initialization, for sigmoid and tanh: variance 2 / (fan_in + fan_out). For a shape (out,
/// in, …) fan_in is in · … and fan_out is out · …, where … are the kernel sizes. Throws Error for fewer than
/// two axes.
Tensor xavier_uniform(const Shape& shape, const RandomOptions& options = {});
Tensor xavier_normal(const Shape& shape, const RandomOptions& options = {});
/// He (Kaiming) initialization, for ReLU: variance 2 / fan_in.
Tensor he_uniform(const Shape& shape, const RandomOptions& options = {});
Tensor he_normal(const Shape& shape, const RandomOptions& options = {});
/// Uniform within ±1/√fan_in: what PyTorch's Linear and Conv2d start with.
Tensor fan_in_uniform(const Shape& shape, const RandomOptions& options = {});

/// The weights of a convolution, (out, in, kernel y, kernel x) with odd kernel sizes, where filter i below
/// min(out, in) copies channel i: 1 at its center, elsewhere 0 (PyTorch's dirac_()). The other filters are
/// those of `weights`. Throws Error for another shape.
Tensor with_identity_filters(const Tensor& weights);

}  // namespace tandem
