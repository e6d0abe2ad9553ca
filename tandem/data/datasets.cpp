#include "tandem/data/datasets.h"

#include <utility>

#include "tandem/data/cifar10.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/mnist.h"
#include "tandem/data/synthetic/digits.h"

namespace tandem {
namespace {

DatasetSplit split_of(const DataSplit& data) {
  return {.name = data.name, .train = ImageDataset(data.train), .test = ImageDataset(data.test)};
}

}  // namespace

DatasetSplit mnist(const FetchOptions& options) {
  return split_of(load_mnist("mnist", fetch_dataset("mnist", options)));
}

DatasetSplit fashion_mnist(const FetchOptions& options) {
  return split_of(load_mnist("fashion-mnist", fetch_dataset("fashion-mnist", options)));
}

DatasetSplit cifar10(const FetchOptions& options) {
  return split_of(load_cifar10(fetch_dataset("cifar10", options)));
}

DatasetSplit digits(const DigitsOptions& options) {
  return split_of(digits_split(options.train, options.test, options.seed));
}

}  // namespace tandem
