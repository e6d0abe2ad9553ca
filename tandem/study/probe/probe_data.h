// The data of a probe: labeled images for training and for test, read one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/train/training_data.h"

namespace tandem {

// Images of a data set by their index.
struct ProbeImages {
  std::shared_ptr<const Dataset> dataset;
  std::vector<std::int32_t> labels;  // of all; −1: cannot be read
};

struct ProbeData {
  std::string name;
  std::string tested_on = "test";
  std::vector<std::string> classes;
  ProbeImages train, test;
  bool photographs = false;           // of any size
  std::vector<std::string> not_read;  // "path: reason"
};

// Data as `load_training_data()` finds them, all training images together. The test images of a folder of
// photographs are those of test/, else the validation images; of rendered photographs those that no training
// uses. Rendered data have 10,000 training images, of the seed. Throws Error as the loading does, and for
// less than two classes.
ProbeData load_probe_data(const std::string& data, const std::string& from, std::uint64_t seed,
                          const MessageFunction& on_message);

// The indices of images that can be read: all, or `limit` evenly spaced ones.
std::vector<std::int64_t> readable_images(const ProbeImages& images, std::int64_t limit = 0);

}  // namespace tandem
