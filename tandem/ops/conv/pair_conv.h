// Convolution by blocks (block_conv.h) for instructions that multiply pairs of rows (pair_product.h). A band
// of padded lines is copied once more, in pairs: every eight bytes beside those of the next window. Its pairs
// are two neighboring output pixels, so that no sums between the lines are computed; where lines are short
// and of odd length, the same pixel of two images.
#pragma once

#include "tandem/ops/conv/block_conv.h"

namespace tandem::detail {

// Where the CPU has such instructions and the windows of pairs begin at whole groups of eight bytes.
bool uses_pair_conv(const BlockConv& conv);
void pair_conv2d(const BlockConv& conv);

}  // namespace tandem::detail
