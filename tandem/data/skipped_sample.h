// Samples that could not be used, and why.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tandem/image/decode_error.h"

namespace tandem {

/// A photograph that could not be decoded.
struct BadSample {
  std::int32_t sample = -1;
  std::string reason;
  SkipKind kind = SkipKind::damaged;
};

/// A sample or file that was skipped.
struct SkippedSample {
  std::int32_t sample = -1;  ///< index in the data set; -1: a file that is not part of it
  std::string name;          ///< path of the file, or a description of the sample
  std::string reason;
  SkipKind kind = SkipKind::damaged;
};

/// The number of skipped files by reason, the most frequent first: "5 files: 3 no decoder for HEIC in this
/// build, 2 damaged".
std::string count_skipped(std::span<const SkippedSample> skipped);

/// CSV with the columns path,kind,reason.
std::string skipped_csv(std::span<const SkippedSample> skipped);

}  // namespace tandem
