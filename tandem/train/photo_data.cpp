#include "tandem/train/photo_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/plates.h"
#include "tandem/report/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t every = 6;  // as split_folder() by default

std::string shown(const fs::path& path) {
  return one_line(path.string());
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string last_name(const std::string& data) {
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

// With the labels of `classes`, which must have all names the folder has.
PhotoFiles with_labels_of(const std::vector<std::string>& classes, const fs::path& root) {
  const ImageFolder folder = scan_image_folder(root);
  std::vector<std::int32_t> label;
  for (const std::string& name : folder.classes) {
    const auto found = std::ranges::find(classes, name);
    check(found != classes.end(), "[photos] {}: class '{}' is not one of the {} that are known: {}",
          shown(root), one_line(name), classes.size(),
          one_line(fmt::format(
              "{}", fmt::join(classes.begin(),
                              classes.begin() + std::min<std::ptrdiff_t>(8, std::ssize(classes)), ", "))));
    label.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  PhotoFiles photos{folder.files, {}};
  for (const std::int32_t own : folder.labels) photos.labels.push_back(label[static_cast<std::size_t>(own)]);
  return photos;
}

struct FoundPhotos {
  std::vector<std::string> classes;
  PhotoFiles train;
  std::optional<PhotoFiles> validation, test;
  bool is_split = false;  // train/ and val/ or test/
};

FoundPhotos find_photos(const fs::path& root) {
  FoundPhotos found;
  const bool has_val = is_folder(root / "val"), has_test = is_folder(root / "test");
  found.is_split = is_folder(root / "train") && (has_val || has_test);
  const ImageFolder folder = scan_image_folder(found.is_split ? root / "train" : root);
  found.classes = folder.classes;
  check(folder.classes.size() >= 2, "[photos] {}: expected two or more classes, got one: '{}'{}",
        shown(found.is_split ? root / "train" : root), one_line(folder.classes[0]),
        folder.classes[0] == "train" ? " (expected val/ or test/ beside train/)" : "");
  if (found.is_split) {
    found.train = {folder.files, folder.labels};
    if (has_val) found.validation = with_labels_of(found.classes, root / "val");
    if (has_test) found.test = with_labels_of(found.classes, root / "test");
    return found;
  }
  found.validation.emplace();
  std::vector<std::int64_t> numbers(folder.classes.size());
  for (std::size_t i = 0; i < folder.files.size(); ++i) {
    const std::int64_t number = numbers[static_cast<std::size_t>(folder.labels[i])]++;
    (number % every == 0 ? *found.validation : found.train).add(folder, i);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i)
    check(numbers[i] >= 2,
          "[photos] {}: class '{}' has one image only: expected one for training and one for validation",
          shown(root), one_line(folder.classes[i]));
  return found;
}

// The first `limit` when the classes take turns; all where there is no limit.
PhotoFiles limited(const PhotoFiles& all, std::int64_t limit, const std::string& name) {
  const std::int64_t count = std::ssize(all.files);
  check(limit <= count, "[train] expected --limit of at most {} training images of {}, got {}", count, name,
        limit);
  if (limit == 0) return all;
  std::vector<std::int64_t> seen, turn(all.files.size());
  std::vector<std::size_t> order(all.files.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto label = static_cast<std::size_t>(all.labels[i]);
    if (seen.size() <= label) seen.resize(label + 1);
    turn[i] = seen[label]++;
    order[i] = i;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return turn[i]; });
  PhotoFiles first;
  for (std::size_t i = 0; i < static_cast<std::size_t>(limit); ++i) {
    first.files.push_back(all.files[order[i]]);
    first.labels.push_back(all.labels[order[i]]);
  }
  return first;
}

PhotoSet set_of(const PhotoFiles& photos, const std::vector<std::string>& classes,
                const TrainOptions& options) {
  return make_photo_set(photos.files, photos.labels, classes, options.evaluation_recipe(),
                        options.photo_reading(), options.on_bad_image);
}

void add_bad(std::vector<SkippedSample>& all, const std::vector<SkippedSample>& bad) {
  all.insert(all.end(), bad.begin(), bad.end());
}

TrainingData load_folder(const TrainOptions& options, const MessageFunction& on_message) {
  const FoundPhotos found = find_photos(options.data);
  TrainingData data;
  data.name = last_name(options.data);
  const PhotoFiles train = limited(found.train, options.limit, data.name);
  if (!found.is_split && on_message)
    on_message(fmt::format("Photographs 0, {}, {}, … of each class judge the epochs: {} of {}", every,
                           2 * every, found.validation->files.size(),
                           found.validation->files.size() + found.train.files.size()));
  data.judged_on = found.validation ? "validation" : "test";
  data.tested_on = found.test ? "test" : "validation";
  PhotoSet judging = set_of(found.validation ? *found.validation : *found.test, found.classes, options);
  add_bad(data.bad, judging.bad);
  data.validation = judging.images;
  data.held_out = found.validation && found.test;
  if (data.held_out) {
    judging = set_of(*found.test, found.classes, options);
    add_bad(data.bad, judging.bad);
  }
  data.test = judging.images;
  data.test_names = judging.names;
  data.train = {std::make_shared<const PhotoStore>(train.files, train.labels,
                                                   PhotoStoreOptions{.on_bad_image = options.on_bad_image,
                                                                     .reading = options.photo_reading()}),
                found.classes, options.image_size};
  return data;
}

// ---- plates

constexpr std::int64_t usual_plates = 40, judging_plates = 200, evaluated_plates = 500;
constexpr std::uint64_t first_evaluated_plate = first_test_plate + 1000000;

// The kinds in turn, from a number on.
struct Plates {
  std::uint64_t seed, first;
  std::vector<std::string> names;
  std::vector<std::int32_t> labels;

  Plates(std::uint64_t plate_seed, std::uint64_t first_number, std::int64_t count)
      : seed(plate_seed), first(first_number) {
    for (std::int64_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<std::int32_t>(i % 2));
      names.push_back(fmt::format("{} {}", i % 2 == 1 ? "dirty" : "clean", i / 2));
    }
  }
  Image draw(std::size_t i) const { return draw_plate(seed, first + i / 2, labels[i] == 1); }
};

std::vector<std::string> plate_classes() {
  return {"clean", "dirty"};
}

TrainingData load_plates(const TrainOptions& options) {
  const std::int64_t count = options.limit > 0 ? options.limit : usual_plates;
  constexpr std::int64_t plate_bytes = 480 * 480 * 3;
  const std::int64_t most = std::min<std::int64_t>(free_host_bytes() / 4 / plate_bytes, 100000);
  check(count >= 2 && count <= most, "[train] expected --limit of 2 to {} plates, got {}", most, count);
  const Plates train(options.seed, 0, count), test(options.seed, first_test_plate, judging_plates);
  std::vector<Image> drawn(static_cast<std::size_t>(count));
  parallel_tasks(count, 1, [&] {
    return [&](std::int64_t begin, std::int64_t) {
      const auto i = static_cast<std::size_t>(begin);
      drawn[i] = train.draw(i);
    };
  });
  TrainingData data;
  data.name = "plates";
  const PhotoSet judging = make_photo_set([&](std::size_t i) { return test.draw(i); }, test.names,
                                          test.labels, plate_classes(), options.evaluation_recipe());
  data.validation = data.test = judging.images;
  data.test_names = judging.names;
  data.judged_on = data.tested_on = "validation";
  data.train = {std::make_shared<const PhotoStore>(drawn, train.names, train.labels), plate_classes(),
                options.image_size};
  return data;
}

}  // namespace

bool is_photo_data(const std::string& data) {
  if (data == "plates") return true;
  if (data == "digits" || data == "mnist" || data == "fashion-mnist" || !is_folder(data)) return false;
  std::error_code error;
  for (fs::directory_iterator entry(data, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().native().find("-ubyte") != std::string::npos) return false;
  return true;
}

TrainingData load_photo_data(const TrainOptions& options, const MessageFunction& on_message) {
  check(options.validation == 0,
        "[train] --validation is for images of one size: photographs are judged by val/ or every {}th",
        every);
  return options.data == "plates" ? load_plates(options) : load_folder(options, on_message);
}

PhotoSet load_test_photos(const std::string& data, const ModelInfo& info, bool as_trained) {
  const PhotoRecipe recipe = info.photo_recipe();
  if (data == "plates") {
    const Plates plates(1, first_evaluated_plate, evaluated_plates);
    std::vector<std::int32_t> labels;
    for (const std::int32_t own : plates.labels) {
      const auto found = std::ranges::find(info.classes, plate_classes()[static_cast<std::size_t>(own)]);
      check(found != info.classes.end(), "[eval] expected a model of the classes clean and dirty for plates");
      labels.push_back(static_cast<std::int32_t>(found - info.classes.begin()));
    }
    return make_photo_set([&](std::size_t i) { return plates.draw(i); }, plates.names, labels, info.classes,
                          recipe);
  }
  const fs::path root = data;
  check(is_folder(root), "[eval] expected plates or a folder of photographs, got '{}'", one_line(data));
  PhotoFiles photos;
  if (is_folder(root / "test")) {
    photos = with_labels_of(info.classes, root / "test");
  } else if (is_folder(root / "val")) {
    photos = with_labels_of(info.classes, root / "val");
  } else {
    photos = with_labels_of(info.classes, root);
    FoundPhotos found = as_trained ? find_photos(root) : FoundPhotos{};
    if (found.classes == info.classes) photos = std::move(*found.validation);
  }
  return make_photo_set(photos.files, photos.labels, info.classes, recipe);
}

}  // namespace tandem
