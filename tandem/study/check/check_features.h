// Likely mislabels and outliers among images, by the features of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tandem/device/device.h"
#include "tandem/report/check_report.h"
#include "tandem/study/check/copies.h"

namespace tandem {

struct CheckFeaturesOptions {
  std::string model;            // as load_probe_model() accepts it
  std::int64_t image_size = 0;  // 0: the model's, or 224
  Device device = cpu_device;
  std::int64_t max_pixels = 179'000'000;
};

// Of the images that were read. Throws Error as the loading does, for features that are not finite, and when
// they need more than half of the free memory.
CheckedFeatures check_features(const CheckFeaturesOptions& options, const CheckedFiles& files,
                               std::span<const ImageFacts> images, const Copies& copies,
                               const CheckProgress& on_progress = {});

}  // namespace tandem
