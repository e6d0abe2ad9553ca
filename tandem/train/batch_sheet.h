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

// The first `count` images of the first epoch, fewer if the data set is smaller, augmented by the options'
// transform and with their classes as labels: the pixels that training with that seed gets.
Image batch_sheet(const TrainingImages& train, const TrainOptions& options, std::int64_t count);

}  // namespace tandem
