// Transfer learning from a folder of photographs to predictions, timed phase by phase on every device.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"
#include "tandem/study/plates_findings.h"

namespace tandem {

StudyReport study_plates(const StudyOptions& options = {});

struct PlatesFlow {
  std::int64_t of_each_kind = 21, every = 6;  // of which numbers 0, 6, … of each kind judge the epochs
  std::int64_t fresh = 500;                   // to predict
  std::int64_t side = 480;                    // of the photographs
  std::int64_t image_size = 224;              // of the network's images
  std::int64_t epochs = 100, batch_size = 8;
  std::filesystem::path pretrained;  // weights; empty: random ones
  std::uint64_t seed = 1;
};

// Draws the plates into files below `root`: what the flow begins with.
void write_flow_plates(const std::filesystem::path& root, const PlatesFlow& flow);

// The flow on one device, on those files; what it makes itself goes below `root` too.
FlowResult run_plates_flow(const std::filesystem::path& root, const PlatesFlow& flow, Device device);

}  // namespace tandem
