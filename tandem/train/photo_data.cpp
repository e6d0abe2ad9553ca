#include "tandem/train/photo_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/parallel.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/loader/materialize.h"
#include "tandem/data/photo_store.h"
#include "tandem/data/synthetic/plates.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t validation_stride = 6;  // the default of split_folder()

std::string printable(const fs::path& path) {
  return one_line(path.string());
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string folder_name(const std::string& data) {
  const fs::path folder = fs::path(data).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

// ---- folders

struct PhotoFiles {
  std::vector<fs::path> files;
  std::vector<std::int32_t> labels;

  void add(const ImageFolder& folder, std::size_t i) {
    files.push_back(folder.files[i]);
    labels.push_back(folder.labels[i]);
  }
};

PhotoFiles scan_with_classes(const std::vector<std::string>& classes, const fs::path& root) {
  const ImageFolder folder = scan_image_folder(root, classes);
  return {folder.files, folder.labels};
}

struct FoundPhotos {
  std::vector<std::string> classes;
  PhotoFiles train;
  std::optional<PhotoFiles> validation, test;
  bool is_split = false;  // whether there are train/ and val/ or test/
  bool holds_out = true;  // whether the validation images are taken from the training images
};

FoundPhotos find_photos(const fs::path& root, const std::set<std::string>& kept_validation = {}) {
  FoundPhotos found;
  const bool has_val = is_folder(root / "val"), has_test = is_folder(root / "test");
  found.is_split = is_folder(root / "train") && (has_val || has_test);
  const ImageFolder folder = scan_image_folder(found.is_split ? root / "train" : root);
  found.classes = folder.classes;
  check(folder.classes.size() >= 2, "[photos] {}: expected two or more classes, got one: '{}'{}",
        printable(found.is_split ? root / "train" : root), one_line(folder.classes[0]),
        folder.classes[0] == "train" ? " (expected val/ or test/ beside train/)" : "");
  if (has_test && found.is_split) found.test = scan_with_classes(found.classes, root / "test");
  if (has_val && found.is_split) {
    found.train = {folder.files, folder.labels};
    found.validation = scan_with_classes(found.classes, root / "val");
    found.holds_out = false;
    return found;
  }
  found.validation.emplace();
  std::vector<std::int64_t> counts(folder.classes.size());
  for (std::size_t i = 0; i < folder.files.size(); ++i) {
    const std::int64_t index = counts[static_cast<std::size_t>(folder.labels[i])]++;
    const bool held_out = kept_validation.empty() ? index % validation_stride == 0
                                                  : kept_validation.contains(folder.files[i].string());
    (held_out ? *found.validation : found.train).add(folder, i);
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    check(counts[i] >= 2,
          "[photos] {}: class '{}' has only one image: expected one for training and one for validation",
          printable(root), one_line(folder.classes[i]));
  return found;
}

// The first `limit` images, alternating between the classes; all if there is no limit.
PhotoFiles limited(const PhotoFiles& all, std::int64_t limit, const std::string& name) {
  const std::int64_t count = std::ssize(all.files);
  check(limit <= count, "[train] expected limit of at most {} training images of {}, got {}", count, name,
        limit);
  if (limit == 0) return all;
  std::vector<std::int64_t> class_counts, index_in_class(all.files.size());
  std::vector<std::size_t> order(all.files.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto label = static_cast<std::size_t>(all.labels[i]);
    if (class_counts.size() <= label) class_counts.resize(label + 1);
    index_in_class[i] = class_counts[label]++;
    order[i] = i;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return index_in_class[i]; });
  PhotoFiles first;
  for (std::size_t i = 0; i < static_cast<std::size_t>(limit); ++i) {
    first.files.push_back(all.files[order[i]]);
    first.labels.push_back(all.labels[order[i]]);
  }
  return first;
}

PhotoSet evaluation_set(const PhotoFiles& photos, const std::vector<std::string>& classes,
                        const TrainOptions& options) {
  return load_photo_set(photos.files, photos.labels, classes, options.photo_evaluation_transform().photo(),
                        options.photo_decode_options(), options.on_bad_image);
}

void add_bad(std::vector<SkippedSample>& all, const std::vector<SkippedSample>& bad) {
  all.insert(all.end(), bad.begin(), bad.end());
}

TrainingData load_folder(const TrainOptions& options, const MessageFunction& on_message) {
  const FoundPhotos found = find_photos(options.data, options.kept_validation);
  TrainingData data;
  data.name = folder_name(options.data);
  const PhotoFiles train = limited(found.train, options.limit, data.name);
  if (found.holds_out && on_message)
    on_message(fmt::format(
        "Validation: {}, {} of {}",
        options.kept_validation.empty()
            ? fmt::format("photographs 0, {}, {}, … of each class", validation_stride, 2 * validation_stride)
            : "the photographs held out when the run began",
        found.validation->files.size(), found.validation->files.size() + found.train.files.size()));
  data.validated_on = found.validation ? "validation" : "test";
  data.tested_on = found.test ? "test" : "validation";
  PhotoSet held_out =
      evaluation_set(found.validation ? *found.validation : *found.test, found.classes, options);
  add_bad(data.bad, held_out.bad);
  data.validation = held_out.images;
  data.validation_names = held_out.names;
  data.held_out = found.validation && found.test;
  if (data.held_out) {
    held_out = evaluation_set(*found.test, found.classes, options);
    add_bad(data.bad, held_out.bad);
  }
  data.test = held_out.images;
  data.test_names = held_out.names;
  data.train = {
      std::make_shared<const PhotoDataset>(
          train.files, train.labels, found.classes,
          PhotoStoreOptions{.on_bad_image = options.on_bad_image, .decode = options.photo_decode_options()}),
      options.image_size};
  return data;
}

// ---- plates

constexpr std::int64_t default_plates = 40, validation_plates = 200, evaluation_plates = 500;
constexpr std::uint64_t first_evaluation_plate = first_test_plate + 1000000;

// Clean and dirty plates alternately, rendered from consecutive plate numbers.
class Plates : public Dataset {
 public:
  Plates(std::uint64_t seed, std::uint64_t first, std::int64_t count,
         std::vector<std::string> classes = {"clean", "dirty"})
      : seed_(seed), first_(first), count_(count), classes_(std::move(classes)) {
    for (const char* const name : {"clean", "dirty"}) {
      const auto found = std::ranges::find(classes_, name);
      check(found != classes_.end(), "[eval] expected a model of the classes clean and dirty for plates");
      labels_.push_back(static_cast<std::int32_t>(found - classes_.begin()));
    }
  }

  std::int64_t size() const override { return count_; }
  Image image(std::int64_t index) const override {
    return render_plate(seed_, first_ + static_cast<std::uint64_t>(index / 2), index % 2 == 1);
  }
  std::int32_t label(std::int64_t index) const override {
    return labels_[static_cast<std::size_t>(index % 2)];
  }
  std::vector<std::string> classes() const override { return classes_; }
  std::string describe(std::int64_t index) const override {
    return fmt::format("{} {}", index % 2 == 1 ? "dirty" : "clean", index / 2);
  }

  // All of them, rendered in parallel.
  std::shared_ptr<const PhotoDataset> rendered() const {
    std::vector<Image> images(static_cast<std::size_t>(count_));
    std::vector<std::string> names;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < count_; ++i) {
      names.push_back(describe(i));
      labels.push_back(label(i));
    }
    parallel_tasks(count_, 1, [&] {
      return [&](std::int64_t i, std::int64_t) { images[static_cast<std::size_t>(i)] = image(i); };
    });
    return std::make_shared<const PhotoDataset>(std::make_shared<const PhotoStore>(images, names, labels),
                                                classes_);
  }

 private:
  std::uint64_t seed_, first_;
  std::int64_t count_;
  std::vector<std::string> classes_;
  std::vector<std::int32_t> labels_;  // of clean and dirty
};

TrainingData load_plates(const TrainOptions& options) {
  const std::int64_t count = options.limit > 0 ? options.limit : default_plates;
  constexpr std::int64_t plate_bytes = 480 * 480 * 3;
  const std::int64_t max_count = std::min<std::int64_t>(free_host_bytes() / 4 / plate_bytes, 100000);
  check(count >= 2 && count <= max_count, "[train] expected limit of 2 to {} plates, got {}", max_count,
        count);
  TrainingData data;
  data.name = "plates";
  const PhotoSet held_out = materialize_named(Plates(options.seed, first_test_plate, validation_plates),
                                              options.photo_evaluation_transform());
  data.validation = data.test = held_out.images;
  data.validation_names = data.test_names = held_out.names;
  data.validated_on = data.tested_on = "validation";
  data.train = {Plates(options.seed, 0, count).rendered(), options.image_size};
  return data;
}

}  // namespace

bool is_photo_data(const std::string& data) {
  if (const DatasetRow* const row = datasets().find(data)) return row->is_photographs();
  if (!is_folder(data)) return false;
  std::error_code error;
  for (fs::directory_iterator entry(data, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().native().find("-ubyte") != std::string::npos) return false;
  return true;
}

TrainingData load_photo_data(const TrainOptions& options, const MessageFunction& on_message) {
  check(options.validation.value_or(0) == 0,
        "[train] expected no validation count for photographs, which are validated on val/ or every {}th "
        "image, got "
        "{}",
        validation_stride, *options.validation);
  TrainingData data = options.data == "plates" ? load_plates(options) : load_folder(options, on_message);
  data.source = options.data;
  data.evaluation_transform = options.photo_evaluation_transform().to_string();
  return data;
}

PhotoSet load_test_photos(const std::string& data, const ModelInfo& info, bool as_trained) {
  const PhotoRecipe recipe = info.photo_recipe();
  if (data == "plates")
    return materialize_named(Plates(1, first_evaluation_plate, evaluation_plates, info.classes), recipe);
  const fs::path root = data;
  check(is_folder(root), "[eval] expected plates or a folder of photographs, got '{}'", one_line(data));
  PhotoFiles photos;
  if (is_folder(root / "test")) {
    photos = scan_with_classes(info.classes, root / "test");
  } else if (is_folder(root / "val")) {
    photos = scan_with_classes(info.classes, root / "val");
  } else {
    photos = scan_with_classes(info.classes, root);
    FoundPhotos found = as_trained ? find_photos(root) : FoundPhotos{};
    if (found.classes == info.classes) photos = std::move(*found.validation);
  }
  return load_photo_set(photos.files, photos.labels, info.classes, recipe);
}

}  // namespace tandem
