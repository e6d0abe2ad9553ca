// Photographs for training, validation and test: image folders and the built-in plates.
#pragma once

#include <string>

#include "tandem/data/photo_set.h"
#include "tandem/train/model_file.h"
#include "tandem/train/training_data.h"

namespace tandem {

// Whether `data` is "plates" or a folder without idx files.
bool is_photo_data(const std::string& data);

// A folder contains train/ and val/ or test/, each with one folder per class; if only one of val/ and test/
// exists, it is both validation and test set. Or it contains the class folders itself: then images 0, 6, 12,
// … of each class are held out for validation, as split_folder() does. Plates are rendered from the seed. A
// limit takes the first images, alternating between the classes.
TrainingData load_photo_data(const TrainOptions& options, const MessageFunction& on_message);

// Labeled photographs with the model's transform, labeled by class name: DATA/test, else DATA/val, else DATA
// itself. With `as_trained`, a folder that was split for training gives only its validation images. For
// plates, 500 that are never used in training.
PhotoSet load_test_photos(const std::string& data, const ModelInfo& info, bool as_trained);

}  // namespace tandem
