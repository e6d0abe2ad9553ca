// A photograph that needs no file: a scene drawn by code, the same on every machine, for demonstrations and
// tests.
#pragma once

#include <cstdint>

#include "tandem/image/image.h"

namespace tandem {

// A house, trees and a fence before hills and a cloudy sky: sharp and soft edges, lines in all directions,
// fine texture and smooth gradients, so that every filter has something to show. RGB, any size, best at 3:2.
Image draw_test_photo(int64_t height, int64_t width);

}  // namespace tandem
