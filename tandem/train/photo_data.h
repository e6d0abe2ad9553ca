// Photographs to train on and to judge by: folders of them, and the built-in plates.
#pragma once

#include <string>

#include "tandem/data/photo_set.h"
#include "tandem/train/model_file.h"
#include "tandem/train/training_data.h"

namespace tandem {

// `plates`, or a folder that holds no idx file.
bool is_photo_data(const std::string& data);

// A folder has train/ and val/ or test/ in it, each with a folder for each class: val judges the epochs, test
// is for the end, and where only one of them is there it does both. Or it has a folder for each class itself:
// then numbers 0, 6, 12, … of each class judge, as split_folder() would have it. Plates are drawn from the
// seed. With a limit, the first images of the classes in turn.
TrainingData load_photo_data(const TrainOptions& options, const MessageFunction& on_message);

// Labelled photographs for a model, in the model's transform and with its labels, found by the names of the
// classes: DATA/test, else DATA/val, else DATA itself. What `as_trained` names is what judged the training.
// Plates are 500 that no training has seen.
PhotoSet load_test_photos(const std::string& data, const ModelInfo& info, bool as_trained);

}  // namespace tandem
