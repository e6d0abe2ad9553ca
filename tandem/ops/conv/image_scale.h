// Products with one factor per image, or per image and channel: squeeze-and-excitation and stochastic depth.
#pragma once

#include <functional>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// The factors of squeeze_excite() from the means, both (n, channels) in f32 (f64 for x in f64). The result
/// must depend on the argument, with gradients as operations record them.
using ExcitationFunction = std::function<Tensor(const Tensor& means)>;

/// Squeeze-and-excitation (Hu et al. 2017): x (n, height, width, channels) · excite(mean of x over height and
/// width), per image and channel. Forward and backward read x, or its gradient, twice. Throws Error for x
/// that is not a floating tensor of four axes, and for factors of another shape or dtype.
Tensor squeeze_excite(const Tensor& x, const ExcitationFunction& excite);

/// x · factors + residual, for x (n, …) and factors (n) in f32 (f64 for x in f64), which get no gradient. The
/// residual has x's shape and dtype or is an empty handle. Throws Error for shapes, dtypes or devices that do
/// not match.
Tensor scale_images(const Tensor& x, const Tensor& factors, const Tensor& residual = {});

}  // namespace tandem
