// Checks a folder of images before it is trusted: what is not read, copies, leaks, balance, odd sizes and
// colors, and with a model likely mislabels and outliers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "tandem/device/device.h"
#include "tandem/report/check_report.h"

namespace tandem {

struct CheckDataOptions {
  std::filesystem::path data;
  std::int64_t max_pixels = 179'000'000;  // larger images are not read
  std::string model;                      // as load_probe_model() accepts it; empty: none
  std::int64_t image_size = 0;            // of its input; 0: the model's, or 224
  Device device = cpu_device;             // of the model
  bool pictures = false;                  // small JPEGs of what a page shows
  std::function<void(const char* phase, std::int64_t done, std::int64_t total)> on_progress = {};
};

// Changes nothing. Throws Error when the folder is not there or has no image that can be read, and as
// check_features() does.
CheckReport check_data(const CheckDataOptions& options);

}  // namespace tandem
