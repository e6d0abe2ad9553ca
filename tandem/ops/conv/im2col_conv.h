// im2col convolution on the CPU, for every window, in f32 and f64: the windows of a block of pixels are
// gathered into rows and multiplied by the packed weight. The bits do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/product_tile.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// The number of elements of the packed weight of all groups, and the packing.
template <class T>
std::int64_t im2col_weight_size(const Conv2dPlan& plan);
template <class T>
void pack_im2col_weight(const Conv2dPlan& plan, T* packed, const T* weight);

// y = conv2d(x) with the packed weight, then the epilogue, whose residual has the layout of y.
template <class T>
void im2col_conv2d(const Conv2dPlan& plan, T* y, const T* x, const T* packed, const RowEpilogue<T>& epilogue);

template <class T>
void im2col_input_gradient(const Conv2dPlan& plan, T* dx, const T* dy, const T* weight);
template <class T>
void im2col_weight_gradient(const Conv2dPlan& plan, T* dweight, const T* dy, const T* x);

}  // namespace tandem::detail
