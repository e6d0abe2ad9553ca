// The test images that a report shows, and which cells of the confusion matrix they belong to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/nn/loss.h"
#include "tandem/report/training_report.h"
#include "tandem/train/decision.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/training_data.h"

namespace tandem {

// The images of the cells stay within both limits; further images are left out.
inline constexpr std::size_t max_images_per_cell = 12, max_cell_bytes = 384 * 1024;

// The model that was tested, with the weights that were; null: not at hand.
struct TestedModel {
  Module* module = nullptr;
  ImageInput input = {};
};

// Sets the confusion matrix, the images of its cells, the worst mistakes and, for photographs, the most
// confident correct predictions. `tested` belongs to the images data.test. With a model that has
// convolutions, mistakes have class activation maps.
void add_test_images(TrainingReport& report, const TrainingData& data, const Evaluation& tested,
                     LossKind loss, const TestedModel& model = {});

// Sets the curves of two classes; of others nothing.
void add_curves(TrainingReport& report, const TrainingData& data, const Evaluation& tested, LossKind loss,
                const Decision& decision);

}  // namespace tandem
