// MNIST and Fashion-MNIST out of their four idx files.
#pragma once

#include <filesystem>
#include <string>

#include "tandem/data/image_set.h"

namespace tandem {

// `name` is mnist or fashion-mnist; `folder` holds train-images-idx3-ubyte, train-labels-idx1-ubyte and the
// same with t10k, raw or gz. Images become (count, height, width, 1). The files need not be the published
// ones, but counts must match, train and test images have one size, and labels lie in 0 … 9.
DataSplit load_mnist(const std::string& name, const std::filesystem::path& folder);

}  // namespace tandem
