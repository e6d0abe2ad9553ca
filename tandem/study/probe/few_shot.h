// Which training images are labeled, and what the accuracies of two models on the same images say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/report/probe_report.h"

namespace tandem {

// One random choice of training images.
struct LabeledDraw {
  std::uint64_t seed = 1;
  std::int64_t number = 0;  // of the draw
};

// Indices in `labels` of `per_class` images of each class, by class. They depend on the arguments alone, and
// those of fewer images per class are among those of more. A negative label marks an image that is not
// available. Throws Error when a class, whose name it tells, has fewer images.
std::vector<std::int64_t> choose_labeled(std::span<const std::int32_t> labels,
                                         const std::vector<std::string>& classes, std::int64_t per_class,
                                         const LabeledDraw& draw);

// Whether each test image was classified correctly (1 or 0), for each draw.
using Correct = std::vector<std::vector<std::uint8_t>>;

// One accuracy per draw.
std::vector<double> accuracies(const Correct& correct);

// The mean of the accuracies of `correct` minus those of `base`, which has the same draws and images. The 95
// % interval (Student's t) covers the choice of the labeled and of the test images; it is NaN with one draw.
ProbeDifference paired_difference(const Correct& correct, const Correct& base);

}  // namespace tandem
