// Measures how good the features of models are: the accuracy that a linear classifier and the nearest
// neighbors reach with few labeled images.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/report/probe_report.h"

namespace tandem {

struct ProbeOptions {
  std::vector<std::string> models;  // as load_probe_model() accepts them
  std::string data;                 // as load_probe_data() accepts it
  std::string from;                 // folder or archive with the data set's files
  std::string architecture = "resnet18";
  std::vector<std::int64_t> per_class = {10};  // labeled images
  std::int64_t draws = 5;                      // random choices of the labeled images
  std::uint64_t seed = 1;                      // of the draws and of random weights
  std::int64_t limit = 0;                      // test images, evenly spaced; 0: all
  std::int64_t image_size = 0;                 // 0: the model's, else 224 for photographs and 112 for others
  Device device = cpu_device;
  std::function<void(const std::string& line)> on_message = {};
  std::function<void(const std::string& model, std::int64_t done, std::int64_t images)> on_progress = {};
};

// All models get the same labeled and test images. Random weights get the batch-norm statistics of at most
// 512 training images, whose labels are not used, the same for all draws. Throws Error as the loading does,
// when a class has fewer training images than options.per_class, and for features that are not finite.
ProbeReport probe(const ProbeOptions& options);

}  // namespace tandem
