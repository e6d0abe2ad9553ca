// CIFAR-10 in its binary version: data_batch_1.bin … data_batch_5.bin and test_batch.bin, each a sequence of
// records of one label byte and 3 × 1024 bytes: the red, green and blue plane of a 32×32 image.
#pragma once

#include <filesystem>

#include "tandem/data/image_set.h"
#include "tandem/files/fetch.h"

namespace tandem {

/// Loads the files in `folder`: images (count, 32, 32, 3). Throws Error for a file that cannot be read, is
/// empty or not a whole number of records, and for a label above 9. The files need not be the published ones.
DataSplit load_cifar10(const std::filesystem::path& folder);

/// Where the published archive comes from.
FetchSource cifar10_source();

}  // namespace tandem
