// X·Xᵀ on the tensor cores, for xxt.cu alone.
#pragma once

#include "tandem/device/stream.h"
#include "tandem/ops/xxt.h"

namespace tandem {

void xxt_tf32(const XxtShape& shape, const float* x, float* out, StreamView stream);

}  // namespace tandem
