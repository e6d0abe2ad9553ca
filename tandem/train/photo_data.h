// Photographs for training, validation and test: folders and rendered photographs.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/data/photo_set.h"
#include "tandem/train/model_file.h"
#include "tandem/train/training_data.h"

namespace tandem {

// Whether `data` is the name of rendered photographs or a folder without idx files.
bool is_photo_data(const std::string& data);

// The photographs of a folder as find_photos() divides them; without a test set, the validation set is the
// test set too. Or rendered ones, from the seed. A limit takes the first images, alternating between the
// classes.
TrainingData load_photo_data(const TrainOptions& options, const MessageFunction& on_message);

// The training images of load_photo_data() alone. Rendered ones are rendered when they are read.
TrainingImages training_photos(const TrainOptions& options);

struct PhotoCounts {
  std::int64_t training = 0;
  std::int64_t smallest_class = 0;  // with the photographs that are held out of a training folder
  bool has_other_parts = false;     // folders or rendered photographs for validation or test
};

// The photographs that load_photo_data() will find. Throws Error as it does.
PhotoCounts count_photos(const std::string& data, std::int64_t limit);

// Labeled photographs with the model's transform, labeled by class name, as find_test_photos() finds them.
// For rendered data the test set, which is never used in training.
PhotoSet load_test_photos(const std::string& data, const ModelInfo& info, bool as_trained);

// At most `count` of the training photographs of load_photo_data(), alternating between the classes, with the
// model's transform.
PhotoSet load_calibration_photos(const std::string& data, const ModelInfo& info, std::int64_t count);

}  // namespace tandem
