// The data sets that come with the library, split into training and test images.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/data/dataset.h"
#include "tandem/files/fetch.h"

namespace tandem {

/// The training and the test images of a data set.
struct DatasetSplit {
  std::string name;  ///< "mnist"
  ImageDataset train;
  ImageDataset test;
};

/// Handwritten digits: 60,000 training and 10,000 test images of 28×28, gray. Downloaded into the cache if
/// they are not there. Throws Error when they cannot be downloaded.
DatasetSplit mnist(const FetchOptions& options = {});
/// Articles of clothing, in the format of MNIST.
DatasetSplit fashion_mnist(const FetchOptions& options = {});
/// CIFAR-10: 50,000 training and 10,000 test images of 32×32, RGB.
DatasetSplit cifar10(const FetchOptions& options = {});

struct DigitsOptions {
  std::int64_t train = 60000;
  std::int64_t test = 10000;
  std::uint64_t seed = 1;
};

/// Digits rendered in the style of handwriting, in the format of MNIST: needs no files. Test images do not
/// depend on the number of training images. Throws Error for counts outside 0 … 2³¹.
DatasetSplit digits(const DigitsOptions& options = {});

}  // namespace tandem
