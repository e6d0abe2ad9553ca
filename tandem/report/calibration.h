// The temperature of a model, and what it does to its probabilities.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/report/reliability.h"

namespace tandem {

struct Calibration {
  double temperature = 1;
  std::string fitted_on;                 // name of the images it was fitted to
  std::int64_t fitted_count = 0;         // their number; 0: not known
  std::optional<bool> same_images = {};  // whether the figures are measured on those images; none: not known
  std::int64_t images = 0;               // that the figures are measured on
  Reliability before, after;
};

}  // namespace tandem
