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

}  // namespace tandem
