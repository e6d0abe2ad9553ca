#include "tandem/study/probe/probe_data.h"

#include <fmt/format.h>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/photo_store.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/photo_folder.h"

namespace tandem {
namespace {

constexpr std::int64_t rendered_images = 10000;

ProbeImages images_of(std::shared_ptr<const Dataset> dataset) {
  ProbeImages images{.dataset = std::move(dataset), .labels = {}};
  for (std::int64_t i = 0; i < images.dataset->size(); ++i) images.labels.push_back(images.dataset->label(i));
  return images;
}

ProbeImages read_photos(const PhotoFiles& files, ProbeData& data) {
  const auto photos = std::make_shared<const PhotoDataset>(files.files, files.labels, data.classes);
  ProbeImages images = images_of(photos);
  for (const BadSample& bad : photos->photos()->bad()) {
    images.labels[static_cast<std::size_t>(bad.sample)] = -1;
    data.not_read.push_back(fmt::format("{}: {}", photos->describe(bad.sample), bad.reason));
  }
  for (const SkippedSample& file : files.skipped)
    data.not_read.push_back(fmt::format("{}: {}", file.name, file.reason));
  return images;
}

void load_photographs(const std::string& source, std::uint64_t seed, ProbeData& data) {
  data.photographs = true;
  if (const DatasetRow* const row = datasets().find(source)) {
    const PhotoSplit split = row->load_photos(seed, rendered_images);
    data.train = images_of(split.train);
    data.test = images_of(split.test);
    data.classes = split.train->classes();
    return;
  }
  const FoundPhotos found = find_photos(source);
  data.classes = found.classes;
  data.tested_on = found.test ? "test" : "validation";
  data.train = read_photos(found.train, data);
  data.test = read_photos(found.test ? *found.test : found.validation, data);
}

}  // namespace

ProbeData load_probe_data(const std::string& data, const std::string& from, std::uint64_t seed,
                          const MessageFunction& on_message) {
  ProbeData loaded{.name = data};
  if (is_photo_data(data)) {
    check(from.empty(), "[probe] expected no other place for the files of {}, got {}", data, from);
    load_photographs(data, seed, loaded);
  } else {
    const DataSplit split = load_split(data, from, on_message, rendered_images);
    loaded.name = split.name;
    loaded.classes = split.train.classes;
    loaded.train = images_of(std::make_shared<const ImageDataset>(split.train));
    loaded.test = images_of(std::make_shared<const ImageDataset>(split.test));
  }
  check(loaded.classes.size() >= 2, "[probe] expected two or more classes in {}, got {}", loaded.name,
        loaded.classes.size());
  check(!readable_images(loaded.test).empty(), "[probe] expected {} images of {} that can be read, got none",
        loaded.tested_on, loaded.name);
  return loaded;
}

std::vector<std::int64_t> readable_images(const ProbeImages& images, std::int64_t limit) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < images.labels.size(); ++i)
    if (images.labels[i] >= 0) all.push_back(static_cast<std::int64_t>(i));
  const std::int64_t count = std::ssize(all);
  if (limit <= 0 || limit >= count) return all;
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < limit; ++i)
    some.push_back(all[static_cast<std::size_t>((2 * i + 1) * count / (2 * limit))]);
  return some;
}

}  // namespace tandem
