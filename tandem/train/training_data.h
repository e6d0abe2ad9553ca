// The data sets training knows by name, folders of idx files and of photographs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/batch_source.h"
#include "tandem/data/image_set.h"
#include "tandem/data/photo_store.h"
#include "tandem/train/options.h"

namespace tandem {

using MessageFunction = std::function<void(const std::string& line)>;

// The split that `data` names: mnist and fashion-mnist are fetched where the cache lacks them, digits are
// drawn (so many training images), anything else is a folder with the four idx files.
DataSplit load_split(const std::string& data, const std::string& from, const MessageFunction& on_message,
                     std::int64_t digits = 60000);

// What is trained on: images of one size in memory, or photographs, which are made into images of that size
// as they are needed.
struct TrainingImages {
  TrainingImages() = default;
  TrainingImages(const ImageSet& images);  // not explicit: a set is what is trained on as it is
  TrainingImages(std::shared_ptr<const PhotoStore> photographs, std::vector<std::string> class_names,
                 std::int64_t side);

  ImageSet set;
  std::shared_ptr<const PhotoStore> photos;  // null where `set` is trained on
  std::vector<std::string> classes;
  std::int64_t height = 0, width = 0, channels = 0;

  std::int64_t count() const { return photos ? photos->table().count() : set.count(); }
};

// What a run trains on, judges its epochs on and is tested on at the end.
struct TrainingData {
  std::string name;
  TrainingImages train;
  ImageSet validation, test;
  bool held_out = false;                               // validation is not the test set
  std::string judged_on = "test", tested_on = "test";  // what those sets are called
  std::vector<std::string> test_names;                 // paths of the test images, of photographs
  std::vector<SkippedSample> bad;                      // photographs in those sets that cannot be read
};

TrainingData load_training_data(const TrainOptions& options, const MessageFunction& on_message);

// "28x28 grey", for messages and errors.
std::string image_description(const TrainingImages& images);

}  // namespace tandem
