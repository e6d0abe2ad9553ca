#include "tandem/train/batch_sheet.h"

#include <algorithm>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/data/loader/data_loader.h"
#include "tandem/image/contact_sheet.h"
#include "tandem/text/utf8.h"
#include "tandem/train/photo_data.h"

namespace tandem {
namespace {

// Back from 0 … 1 to levels; exact, because the values are whole levels.
Image image_of(const Batch& batch, std::int64_t index) {
  const std::int64_t height = batch.images.size(1), width = batch.images.size(2);
  Image image = make_image(height, width, static_cast<int>(batch.images.size(3)));
  const float* values = batch.images.data<float>() + index * static_cast<std::int64_t>(image.pixels.size());
  std::ranges::transform(values, values + image.pixels.size(), image.pixels.begin(),
                         [](float value) { return static_cast<std::uint8_t>(value * 255.0f + 0.5f); });
  return image;
}

}  // namespace

TrainOptions with_recipe(TrainOptions options, const std::string& recipe) {
  const bool photographs = is_photo_data(options.data);
  options.transform = Transform::parse(!recipe.empty() ? recipe
                                       : photographs   ? "photo"
                                                       : "digits",
                                       static_cast<int>(options.image_size));
  return resolve_options(std::move(options), photographs);
}

Image batch_sheet(const TrainingImages& train, const FitOptions& options, const BatchSheetOptions& sheet) {
  const std::int64_t count = sheet.count;
  check(count >= 1 && count <= max_batch_sheet_images, "[augment] expected 1 to {} images on a sheet, got {}",
        max_batch_sheet_images, count);
  check(train.channels == 1 || train.channels == 3, "[augment] expected gray or RGB images, got {} channels",
        train.channels);
  const DataLoader loader(train.dataset, {.batch_size = std::min(count, train.count()),
                                          .transform = options.transform,
                                          .shuffle = options.shuffle,
                                          .seed = options.seed,
                                          .workers = options.workers.value_or(0) > 0 ? 1 : 0,
                                          .worker_kind = options.worker_kind});
  std::vector<LabeledImage> images;
  const EpochRange::Iterator first = loader.epoch(0).begin();
  const Batch& batch = *first;
  const std::vector<std::int64_t> labels = batch.labels.to_vector<std::int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= 0)
      images.push_back({image_of(batch, static_cast<std::int64_t>(i)),
                        one_line(train.classes[static_cast<std::size_t>(labels[i])])});
  const bool small = std::max(train.height, train.width) <= 56;
  const std::int64_t cell = small ? 112 : sheet.photo_cell;
  return contact_sheet(images, {.columns = std::min(sheet.columns, std::ssize(images)),
                                .cell_width = cell,
                                .cell_height = cell,
                                .integer_scale = small});
}

}  // namespace tandem
