// A built-in example photograph that needs no file: a scene rendered by code, the same on every machine, for
// demonstrations and tests.
#pragma once

#include <cstdint>

#include "tandem/image/image.h"

namespace tandem {

// A house, trees and a fence in front of hills and a cloudy sky: sharp and soft edges, lines in all
// directions, fine texture and smooth gradients, so that every filter has a visible effect. RGB, any size,
// best at 3:2. Throws Error for negative sides.
Image example_photo(int64_t height, int64_t width);

}  // namespace tandem
