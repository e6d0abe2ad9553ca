// A contact sheet of one training batch, to see what the network sees.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/image/image.h"
#include "tandem/train/training_data.h"

namespace tandem {

inline constexpr std::int64_t max_batch_sheet_images = 1024;

// The options with a recipe for their data: without one, `photo` for photographs and `digits` for others.
// Throws Error for a recipe that does not fit the data.
TrainOptions with_recipe(TrainOptions options, const std::string& recipe);

struct BatchSheetOptions {
  std::int64_t count = 36;        // images, fewer if the data set is smaller
  std::int64_t columns = 0;       // 0: about square
  std::int64_t photo_cell = 224;  // the side of a photograph in pixels
};

// The first images of the first epoch, augmented by the options' transform and with their classes as labels:
// the pixels that training with that seed gets.
Image batch_sheet(const TrainingImages& train, const FitOptions& options, const BatchSheetOptions& sheet);

}  // namespace tandem
