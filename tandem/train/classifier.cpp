#include "tandem/train/classifier.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/train/predict_images.h"

namespace tandem {

Classifier::Classifier(const std::filesystem::path& file, Device device) {
  require_available(device);
  Model model = load_model(file);
  info_ = std::move(model.info);
  own_module_ = std::move(model.module);
  module_ = own_module_.get();
  module_->to(device);
}

Classifier::Classifier(const std::filesystem::path& file, Module& module)
    : info_(load_model_into(module, file)), module_(&module) {}

Prediction Classifier::operator()(const std::uint8_t* pixels, std::int64_t width, std::int64_t height,
                                  std::int64_t channels) {
  constexpr std::int64_t max_side = 1 << 20;
  check(pixels != nullptr, "[classifier] expected pixels, got a null pointer");
  check(width > 0 && width <= max_side && height > 0 && height <= max_side,
        "[classifier] expected a width and height from 1 to {}, got {} and {}", max_side, width, height);
  check(channels == 1 || channels == 3 || channels == 4, "[classifier] expected 1, 3 or 4 channels, got {}",
        channels);
  const std::int64_t kept = channels == 4 ? 3 : channels;
  Image image = make_image(height, width, static_cast<int>(kept));
  for (std::int64_t i = 0; i < height * width; ++i)
    for (std::int64_t c = 0; c < kept; ++c)
      image.pixels[static_cast<std::size_t>(i * kept + c)] = pixels[i * channels + c];
  return (*this)(image);
}

Prediction Classifier::operator()(const Image& image) {
  const Tensor input = model_pixels(info_, image);
  return make_prediction("", predict_probabilities(*module_, info_, input).front(), info_.classes);
}

}  // namespace tandem
