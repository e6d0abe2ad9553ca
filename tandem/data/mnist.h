// MNIST and Fashion-MNIST from their four idx files.
#pragma once

#include <filesystem>
#include <string>

#include "tandem/data/image_set.h"
#include "tandem/files/fetch.h"

namespace tandem {

/// Loads a data set in MNIST's format. `name` is "mnist" or "fashion-mnist" and gives the class names;
/// `folder` holds train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
/// t10k-labels-idx1-ubyte, raw or with .gz. Images have the shape (count, height, width, 1) and are on the
/// CPU. Throws Error for another name, a file that cannot be read, counts or sizes that do not match, and
/// labels outside 0 … 9. The files need not be the published ones.
DataSplit load_mnist(const std::string& name, const std::filesystem::path& folder);

/// Where the published files come from.
FetchSource mnist_source();
FetchSource fashion_mnist_source();

}  // namespace tandem
