// Photographs of any size for training, validation and test.
#pragma once

#include <memory>

#include "tandem/data/dataset.h"

namespace tandem {

/// Data sets of the same classes.
struct PhotoSplit {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
  std::shared_ptr<const Dataset> test;
};

}  // namespace tandem
