// Convolution on the CPU for every window: the windows of a block of pixels are gathered into rows, which are
// multiplied with the packed weight. f32 and f64. Every result has the same bits whatever the number of
// threads.
#pragma once

#include <cstdint>

#include "tandem/ops/conv2d.h"
#include "tandem/ops/product_tile.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// How many elements the packed weight of all groups takes, and the packing.
template <class T>
std::int64_t direct_weight_size(const Conv2dPlan& plan);
template <class T>
void pack_direct_weight(const Conv2dPlan& plan, T* packed, const T* weight);

// y = conv2d(x) by the packed weight, then the epilogue (whose residual lies as y does).
template <class T>
void direct_conv2d(const Conv2dPlan& plan, T* y, const T* x, const T* packed, const RowEpilogue<T>& epilogue);

template <class T>
void direct_input_gradient(const Conv2dPlan& plan, T* dx, const T* dy, const T* weight);
template <class T>
void direct_weight_gradient(const Conv2dPlan& plan, T* dweight, const T* dy, const T* x);

}  // namespace tandem
