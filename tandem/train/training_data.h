// Loads the data of a run: built-in data sets, folders of idx files and folders of photographs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/data/photo_store.h"
#include "tandem/train/options.h"

namespace tandem {

using MessageFunction = std::function<void(const std::string& line)>;

// Loads the split named `data`, a row of datasets(): fetched if it is not cached, or rendered (`digits`
// training images). Anything else is a folder with the four idx files.
DataSplit load_split(const std::string& data, const std::string& from, const MessageFunction& on_message,
                     std::int64_t digits = 60000);

// The training images: a set of one size in memory, or photographs, which are transformed to that size when
// they are needed.
struct TrainingImages {
  TrainingImages() = default;
  TrainingImages(const ImageSet& images);  // implicit on purpose
  TrainingImages(std::shared_ptr<const PhotoStore> photographs, std::vector<std::string> class_names,
                 std::int64_t side);

  ImageSet set;
  std::shared_ptr<const PhotoStore> photos;  // null if `set` is used
  std::vector<std::string> classes;
  std::int64_t height = 0, width = 0, channels = 0;

  std::int64_t count() const { return photos ? photos->table().count() : set.count(); }
};

// The training, validation and test data of a run.
struct TrainingData {
  std::string name;
  TrainingImages train;
  ImageSet validation, test;
  bool held_out = false;                // whether the validation set differs from the test set
  std::string validated_on = "test";    // name of the validation set
  std::string tested_on = "test";       // name of the test set
  std::vector<std::string> test_names;  // photographs: paths of the test images
  std::vector<SkippedSample> bad;       // photographs of the validation and test sets that cannot be read
};

TrainingData load_training_data(const TrainOptions& options, const MessageFunction& on_message);

// "28x28 gray", for messages and errors.
std::string image_description(const TrainingImages& images);

}  // namespace tandem
