// X·Xᵀ on tensor cores in tf32; used only by xxt.cu.
#pragma once

#include "tandem/device/stream.h"
#include "tandem/ops/xxt_kernel.h"

namespace tandem::detail {

void xxt_tf32(const XxtShape& shape, const float* x, float* out, StreamView stream);

}  // namespace tandem::detail
