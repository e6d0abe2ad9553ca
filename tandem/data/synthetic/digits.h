// The built-in data set: digits rendered from strokes in the style of handwriting, 28×28 gray, white on black
// as in MNIST. Image i is a function of the seed and i alone, so any part of the set can be rendered on its
// own, and the same seed gives the same bits with any number of threads. Images 10 k … 10 k + 9 hold each
// digit once, in random order.
#pragma once

#include <cstdint>

#include "tandem/data/image_set.h"

namespace tandem {

/// Renders images first … first + count − 1 of the set of `seed`, which has 2³² images: u8, (count, 28, 28,
/// 1), on the CPU. Throws Error for a range outside the set.
ImageSet make_digits(std::int64_t count, std::uint64_t seed, std::int64_t first = 0);

/// Training images from the first half of the set, test images from the second: the test images do not depend
/// on the number of training images. Throws Error for counts outside 0 … 2³¹.
DataSplit digits_split(std::int64_t train = 60000, std::int64_t test = 10000, std::uint64_t seed = 1);

}  // namespace tandem
