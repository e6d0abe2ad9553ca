// Depthwise convolution on the CPU, in f32 and f64 (depthwise_bf16.h has bf16): every channel has a filter of
// its own. Such a convolution reads each value for few products, so it is computed directly, with vectors
// along the channels. The bits do not depend on the number of threads.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

// The weight (channels, kernel y, kernel x, 1) as the kernels need it: (kernel y, kernel x, channels).
template <class T>
void pack_depthwise_weight(const Conv2dPlan& plan, T* packed, const T* weight);

// The epilogue's residual has the layout of y.
template <class T>
void depthwise_conv2d(const Conv2dPlan& plan, T* y, const T* x, const T* packed,
                      const RowEpilogue<T>& epilogue);
template <class T>
void depthwise_input_gradient(const Conv2dPlan& plan, T* dx, const T* dy, const T* packed);
template <class T>
void depthwise_weight_gradient(const Conv2dPlan& plan, T* dweight, const T* dy, const T* x);

}  // namespace tandem::detail
