#include "tandem/data/skipped_sample.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem {
namespace {

TEST(SkippedSamples, AreCountedByReason) {
  std::vector<SkippedSample> skipped(
      6, {.reason = "no decoder for TIFF in this build", .kind = SkipKind::no_decoder});
  skipped.insert(skipped.begin() + 2, {.reason = "cut short", .kind = SkipKind::damaged});
  skipped.insert(skipped.end(), 3,
                 {.reason = "no decoder for HEIC in this build", .kind = SkipKind::no_decoder});
  skipped.push_back({.reason = "not an image", .kind = SkipKind::damaged});
  EXPECT_EQ(count_skipped(skipped),
            "11 files: 6 no decoder for TIFF in this build, 3 no decoder for HEIC in this build, 2 damaged");
  EXPECT_EQ(count_skipped(std::vector<SkippedSample>(1)), "1 file: 1 damaged");
}

TEST(SkippedSamples, Csv_QuotesNames) {
  EXPECT_EQ(skipped_csv(std::vector<SkippedSample>{
                {.name = "a,b.jpg", .reason = "too \"big\"", .kind = SkipKind::too_large}}),
            "path,kind,reason\n\"a,b.jpg\",too large,\"too \"\"big\"\"\"\n");
}

}  // namespace
}  // namespace tandem
