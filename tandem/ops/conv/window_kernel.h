// The number of positions of a sliding window, and its options in a trace.
#pragma once

#include "tandem/ops/conv/window.h"

namespace tandem::detail {

// The output size of windows of `kernel` over an image of `size`. Error for a kernel, stride, dilation or
// padding out of range, and when the window does not fit the padded image. `op` names the caller in the
// error.
YX window_output_size(const char* op, YX size, YX kernel, const Window& window);

// Adds stride, padding and dilation to the operation that was recorded last (tensor/tape.h).
void trace_window(const Window& window);

}  // namespace tandem::detail
