#include "tandem/train/predict_images.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/image/channels.h"
#include "tandem/image/resize_area.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/views.h"

namespace tandem {

ModelPixels::ModelPixels(const ModelInfo& info, const char* op)
    : height_(info.height),
      width_(info.width),
      channels_(info.channels),
      expects_photos_(info.expects_photos()) {
  check(info.channels == 1 || info.channels == 3, "[{}] expected a model of 1 or 3 channels, got {}", op,
        info.channels);
  if (expects_photos_) recipe_ = info.photo_recipe();
}

void ModelPixels::write(const ImageView& image, std::uint8_t* out, PixelScratch& scratch) const {
  const ImageView view = with_channels(image, static_cast<int>(channels_), scratch.converted);
  if (expects_photos_)
    transform_photo(recipe_, RandomKey{}, view, out, scratch.photo);
  else
    resize_area_into(view, height_, width_, out, scratch.row);
}

Tensor model_pixels(const ModelInfo& info, const Image& image, const char* op) {
  const ModelPixels model(info, op);
  const Tensor pixels = Tensor::empty(model.shape(1), DType::u8);
  PixelScratch scratch;
  model.write(image, pixels.data<std::uint8_t>(), scratch);
  return pixels;
}

Tensor class_probabilities(const ModelInfo& info, const Tensor& outputs) {
  const auto classes = static_cast<std::int64_t>(info.classes.size());
  check(outputs.rank() == 2 && outputs.size(1) == classes,
        "[predict] expected a model with {} outputs for its classes, got outputs of shape {}", classes,
        outputs.shape());
  const Tensor values = cast(outputs.detach(), DType::f32).cpu();
  const double temperature = info.decision.temperature;
  return probabilities(temperature == 1 ? values : divide(values, temperature), info.architecture.loss);
}

std::vector<std::vector<float>> predict_probabilities(Module& module, const ModelInfo& info,
                                                      const Tensor& images, int views) {
  const std::vector<float> all = mean_probabilities(module, info, images, views);
  const std::ptrdiff_t classes = std::ssize(info.classes);
  std::vector<std::vector<float>> rows;
  for (auto row = all.begin(); row != all.end(); row += classes) rows.emplace_back(row, row + classes);
  return rows;
}

void set_prediction(Prediction& prediction, std::span<const float> row, const ModelInfo& info) {
  const std::size_t chosen = info.decision.choose(row);
  prediction.chosen = chosen;
  prediction.class_name = info.classes[chosen];
  prediction.probability = row[chosen];
  prediction.probabilities.assign(row.begin(), row.end());
  prediction.error.clear();
}

Prediction make_prediction(std::string path, std::span<const float> row, const ModelInfo& info) {
  Prediction prediction{.path = std::move(path)};
  set_prediction(prediction, row, info);
  return prediction;
}

}  // namespace tandem
