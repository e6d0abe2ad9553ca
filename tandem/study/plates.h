// Transfer learning from a folder of photographs to predictions, with the time of each phase on every device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"
#include "tandem/study/plates_findings.h"

namespace tandem {

StudyReport study_plates(const StudyOptions& options = {});

struct PlatesFlow {
  std::int64_t images_per_class = 21;
  std::int64_t every = 6;  // images 0, 6, … of each class are held out for validation
  std::int64_t test_images = 500;
  std::int64_t photo_size = 480;  // side of the photographs in pixels
  std::int64_t image_size = 224;  // side of the network input
  std::int64_t epochs = 100;
  std::int64_t batch_size = 8;
  std::filesystem::path pretrained;  // weight file; empty: random initialization
  std::uint64_t seed = 1;
  double max_training_ms = std::numeric_limits<double>::infinity();  // then no further epoch is started
  std::function<void(std::int64_t epoch)> on_epoch = {};             // called before each, from 1 on
};

// Renders the plates into files below `root`, the input of the flow.
void write_flow_plates(const std::filesystem::path& root, const PlatesFlow& flow);

// Runs the flow on one device with those files; its outputs go below `root` too.
FlowResult run_plates_flow(const std::filesystem::path& root, const PlatesFlow& flow, Device device);

}  // namespace tandem
