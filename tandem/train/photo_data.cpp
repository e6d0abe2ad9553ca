#include "tandem/train/photo_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/parallel.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/loader/materialize.h"
#include "tandem/data/photo_store.h"
#include "tandem/data/synthetic/render_counter.h"
#include "tandem/files/packed_path.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"
#include "tandem/train/photo_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string folder_name(const std::string& data) {
  const fs::path folder = fs::path(data).lexically_normal();
  const fs::path name = (folder.has_filename() ? folder : folder.parent_path()).filename();
  return (name.extension() == packed_set_ending ? name.stem() : name).string();
}

// ---- folders

void add_skipped(std::vector<SkippedSample>& all, const std::vector<SkippedSample>& skipped) {
  all.insert(all.end(), skipped.begin(), skipped.end());
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
  PhotoFiles first{.skipped = all.skipped};
  for (std::size_t i = 0; i < static_cast<std::size_t>(limit); ++i) {
    first.files.push_back(all.files[order[i]]);
    first.labels.push_back(all.labels[order[i]]);
  }
  return first;
}

PhotoSet evaluation_set(const PhotoFiles& photos, const std::vector<std::string>& classes,
                        const TrainOptions& options) {
  PhotoSet set =
      load_photo_set(photos.files, photos.labels, classes, options.photo_evaluation_transform().photo(),
                     options.photo_decode_options(), options.on_bad_image);
  add_skipped(set.bad, photos.skipped);
  return set;
}

TrainingImages training_set(const PhotoFiles& photos, const std::vector<std::string>& classes,
                            const TrainOptions& options) {
  const auto dataset = std::make_shared<const PhotoDataset>(
      photos.files, photos.labels, classes,
      PhotoStoreOptions{.on_bad_image = options.on_bad_image, .decode = options.photo_decode_options()});
  TrainingImages images(dataset, options.image_size);
  images.unreadable = std::ssize(dataset->photos()->bad());
  return images;
}

// For a cross-validation: with the photographs that are otherwise held out, by class and path.
TrainingData load_undivided(const TrainOptions& options, const MessageFunction& on_message) {
  const FoundPhotos found = find_photos(options.data);
  check(found.held_out,
        "[train] expected a folder without photographs for validation for folds, which hold out every one in "
        "turn, got {}",
        one_line(options.data));
  if (found.test && on_message)
    on_message(fmt::format("Test: {} is not used", one_line((fs::path(options.data) / "test").string())));
  std::vector<std::pair<std::int32_t, fs::path>> photos;
  for (const PhotoFiles* const part : {&found.train, &found.validation})
    for (std::size_t i = 0; i < part->files.size(); ++i) photos.emplace_back(part->labels[i], part->files[i]);
  std::ranges::sort(photos);
  PhotoFiles all;
  for (const auto& [label, file] : photos) {
    all.labels.push_back(label);
    all.files.push_back(file);
  }
  TrainingData data;
  data.name = folder_name(options.data);
  add_skipped(data.bad, found.train.skipped);
  add_skipped(data.bad, found.validation.skipped);
  data.train = training_set(limited(all, options.limit, data.name), found.classes, options);
  return data;
}

TrainingData load_folder(const TrainOptions& options, const MessageFunction& on_message) {
  if (options.folds > 0) return load_undivided(options, on_message);
  const FoundPhotos found = find_photos(options.data, options.kept_validation);
  TrainingData data;
  data.name = folder_name(options.data);
  const PhotoFiles train = limited(found.train, options.limit, data.name);
  const auto log = [&](const std::string& line) {
    if (on_message) on_message(line);
  };
  if (found.held_out)
    log(fmt::format("Validation: {}, {} of {}",
                    options.kept_validation.empty() ? fmt::format("photographs 0, {}, {}, … of each class",
                                                                  validation_stride, 2 * validation_stride)
                                                    : "the photographs held out when the run began",
                    found.validation.files.size(), found.validation.files.size() + found.train.files.size()));
  if (found.unlabeled_images > 0)
    log(fmt::format("Test: {} has {} images without class folders, which training does not use",
                    one_line((fs::path(options.data) / "test").string()),
                    format_count(found.unlabeled_images)));
  data.validated_on = "validation";
  data.tested_on = found.test ? "test" : "validation";
  PhotoSet held_out = evaluation_set(found.validation, found.classes, options);
  add_skipped(data.bad, train.skipped);
  add_skipped(data.bad, held_out.bad);
  data.validation = held_out.images;
  data.validation_names = held_out.names;
  data.held_out = found.test.has_value();
  if (found.test) {
    held_out = evaluation_set(*found.test, found.classes, options);
    add_skipped(data.bad, held_out.bad);
  }
  data.test = held_out.images;
  data.test_names = held_out.names;
  data.train = training_set(train, found.classes, options);
  return data;
}

// ---- rendered photographs

// Counts the images that are rendered.
class CountedDataset : public Dataset {
 public:
  CountedDataset(const Dataset& rendered, detail::RenderCounter& counter)
      : rendered_(rendered), counter_(counter) {}

  std::int64_t size() const override { return rendered_.size(); }
  Image image(std::int64_t index) const override {
    Image image = rendered_.image(index);
    counter_.add();
    return image;
  }
  std::int32_t label(std::int64_t index) const override { return rendered_.label(index); }
  std::vector<std::string> classes() const override { return rendered_.classes(); }
  std::string describe(std::int64_t index) const override { return rendered_.describe(index); }

 private:
  const Dataset& rendered_;
  detail::RenderCounter& counter_;
};

// All of them, rendered in parallel.
std::shared_ptr<const PhotoDataset> rendered(const Dataset& dataset) {
  std::vector<Image> images(static_cast<std::size_t>(dataset.size()));
  std::vector<std::string> names;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    names.push_back(dataset.describe(i));
    labels.push_back(dataset.label(i));
  }
  parallel_tasks(dataset.size(), 1, [&] {
    return [&](std::int64_t i, std::int64_t) { images[static_cast<std::size_t>(i)] = dataset.image(i); };
  });
  return std::make_shared<const PhotoDataset>(std::make_shared<const PhotoStore>(images, names, labels),
                                              dataset.classes());
}

PhotoSplit rendered_split(const DatasetRow& row, const TrainOptions& options) {
  const std::int64_t count = options.limit > 0 ? options.limit : row.default_photos;
  constexpr std::int64_t photo_bytes = 480 * 480 * 3;
  const std::int64_t max_count = std::min<std::int64_t>(free_host_bytes() / 4 / photo_bytes, 100000);
  check(count >= 2 && count <= max_count, "[train] expected limit of 2 to {} {}, got {}", max_count, row.name,
        count);
  return row.load_photos(options.seed, count);
}

TrainingData load_rendered(const DatasetRow& row, const TrainOptions& options) {
  const PhotoSplit split = rendered_split(row, options);
  detail::RenderCounter counter(split.validation->size() + split.train->size());
  TrainingData data;
  data.name = row.name;
  const PhotoSet held_out =
      materialize_named(CountedDataset(*split.validation, counter), options.photo_evaluation_transform());
  data.validation = data.test = held_out.images;
  data.validation_names = data.test_names = held_out.names;
  data.validated_on = data.tested_on = "validation";
  data.train = {rendered(CountedDataset(*split.train, counter)), options.image_size};
  return data;
}

// The test photographs, labeled with the indices of their classes in `classes`.
PhotoSet load_rendered_test(const DatasetRow& row, const std::vector<std::string>& classes,
                            const PhotoRecipe& recipe) {
  const PhotoSplit split = row.load_photos(0, 0);
  detail::RenderCounter counter(split.test->size());
  PhotoSet set = materialize_named(CountedDataset(*split.test, counter), recipe);
  std::vector<std::int32_t> labels = set.images.labels.to_vector<std::int32_t>(), label_of;
  for (const std::string& name : set.images.classes) {
    const auto found = std::ranges::find(classes, name);
    check(found != classes.end(), "[eval] expected a model of the classes {} for {}, got one without '{}'",
          fmt::join(set.images.classes, ", "), row.name, name);
    label_of.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  for (std::int32_t& label : labels) label = label_of[static_cast<std::size_t>(label)];
  set.images.labels = Tensor::from(labels, {std::ssize(labels)});
  set.images.classes = classes;
  return set;
}

// The rendered photographs of that name; null for a folder.
const DatasetRow* rendered_row(const std::string& data) {
  const DatasetRow* const row = datasets().find(data);
  return row && row->load_photos ? row : nullptr;
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

PhotoCounts count_photos(const std::string& data, std::int64_t limit) {
  if (const DatasetRow* const row = rendered_row(data))
    return {.training = limit > 0 ? limit : row->default_photos, .has_other_parts = true};
  const FoundPhotos found = find_photos(data);
  const std::int64_t training = std::ssize(found.train.files);
  std::vector<std::int64_t> counts(found.classes.size());
  for (const PhotoFiles* const part : {&found.train, &found.validation})
    for (const std::int32_t label : part->labels) ++counts[static_cast<std::size_t>(label)];
  return {.training = limit > 0 ? std::min(limit, training) : training,
          .smallest_class = std::ranges::min(counts),
          .has_other_parts = !found.held_out || found.test.has_value()};
}

TrainingData load_photo_data(const TrainOptions& options, const MessageFunction& on_message) {
  check(options.validation.value_or(0) == 0,
        "[train] expected no validation count for photographs, which are validated on val/ or every {}th "
        "image, got "
        "{}",
        validation_stride, *options.validation);
  const DatasetRow* const row = rendered_row(options.data);
  TrainingData data = row ? load_rendered(*row, options) : load_folder(options, on_message);
  data.source = options.data;
  data.evaluation_transform = options.photo_evaluation_transform().to_string();
  return data;
}

TrainingImages training_photos(const TrainOptions& options) {
  if (const DatasetRow* const row = rendered_row(options.data))
    return {rendered_split(*row, options).train, options.image_size};
  const FoundPhotos found = find_photos(options.data);
  return training_set(limited(found.train, options.limit, folder_name(options.data)), found.classes, options);
}

PhotoSet load_test_photos(const std::string& data, const ModelInfo& info, bool as_trained) {
  const PhotoRecipe recipe = info.photo_recipe();
  if (const DatasetRow* const row = rendered_row(data)) return load_rendered_test(*row, info.classes, recipe);
  check(is_folder(data), "[eval] expected plates or a folder of photographs, got '{}'", one_line(data));
  const PhotoFiles photos = find_test_photos(data, info.classes, as_trained);
  PhotoSet set = load_photo_set(photos.files, photos.labels, info.classes, recipe);
  add_skipped(set.bad, photos.skipped);
  return set;
}

PhotoSet load_calibration_photos(const std::string& data, const ModelInfo& info, std::int64_t count) {
  const PhotoRecipe recipe = info.photo_recipe();
  if (const DatasetRow* const row = rendered_row(data)) {
    const PhotoSplit split = row->load_photos(1, std::max<std::int64_t>(count, 2));
    detail::RenderCounter counter(split.train->size());
    return materialize_named(CountedDataset(*split.train, counter), recipe);
  }
  check(is_folder(data), "[quantize] expected plates or a folder of photographs, got '{}'", one_line(data));
  const FoundPhotos found = find_photos(data);
  const PhotoFiles used =
      limited(found.train, std::min(count, std::ssize(found.train.files)), folder_name(data));
  return load_photo_set(used.files, used.labels, found.classes, recipe);
}

}  // namespace tandem
