// The built-in data set: handwritten-looking digits drawn from strokes, 28×28 grey, white on black as
// MNIST's. Image i is a function of the seed and i alone, so any part of the set can be made anywhere and the
// same seed is the same data on any number of threads. Every ten images from a multiple of ten on hold each
// digit once, in an order of their own.
#pragma once

#include <cstdint>

#include "tandem/data/image_set.h"

namespace tandem {

// Images first … first + count − 1 of the endless set of `seed`; numbers go up to 2³².
ImageSet make_digits(std::int64_t count, std::uint64_t seed, std::int64_t first = 0);

// The test images come from the set's second half: they are the same for every size of the training set.
DataSplit digits_split(std::int64_t train = 60000, std::int64_t test = 10000, std::uint64_t seed = 1);

}  // namespace tandem
