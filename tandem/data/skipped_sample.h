// Samples that could not be used, and why.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// A photograph that could not be decoded.
struct BadSample {
  std::int32_t sample = -1;
  std::string reason;
};

/// A sample that was skipped.
struct SkippedSample {
  std::int32_t sample = -1;  ///< index in the data set
  std::string name;          ///< path of the file, or a description of the sample
  std::string reason;
};

}  // namespace tandem
