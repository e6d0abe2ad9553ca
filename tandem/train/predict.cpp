#include "tandem/train/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tandem/core/check.h"
#include "tandem/files/idx.h"
#include "tandem/files/read_file.h"
#include "tandem/image/decode.h"
#include "tandem/image/resize_area.h"
#include "tandem/report/csv.h"
#include "tandem/train/evaluate.h"

namespace tandem {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;

// idx files begin with two zero bytes, gzip with its own two; no picture does.
bool is_idx(std::string_view bytes) {
  return bytes.starts_with(std::string_view("\0\0", 2)) || bytes.starts_with("\x1f\x8b");
}

Tensor idx_images(const ModelInfo& info, const std::string& bytes, const std::string& name) {
  Tensor images = parse_idx(bytes, name);
  check(images.dtype() == DType::u8 && images.rank() == 3 && images.numel() > 0 && info.channels == 1 &&
            images.size(1) == info.height && images.size(2) == info.width,
        "[predict] {}: expected u8 images of shape [count, {}, {}], as the model's, got {} of {}", name,
        info.height, info.width, images.shape().to_string(), name_of(images.dtype()));
  return images;
}

Tensor picture(const ModelInfo& info, const std::string& bytes, const std::string& name) {
  check(info.channels == 1 || info.channels == 3, "[predict] expected a model of 1 or 3 channels, got {}",
        info.channels);
  const std::span<const std::uint8_t> raw(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const Image decoded = decode_image(raw, name);
  const Image image =
      resize_area(info.channels == 1 ? to_grey(decoded) : to_rgb(decoded), info.height, info.width);
  return Tensor::from(image.pixels, {1, info.height, info.width, info.channels});
}

Tensor inverted(const Tensor& images) {
  std::vector<std::uint8_t> pixels = images.to_vector<std::uint8_t>();
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
  return Tensor::from(pixels, images.shape());
}

}  // namespace

std::vector<Prediction> predict_file(Model& model, const std::filesystem::path& path,
                                     const PredictOptions& options) {
  const ModelInfo& info = model.info;
  const std::string bytes = read_file("predict", path, most_bytes), name = path.string();
  const bool many = is_idx(bytes);
  Tensor images = many ? idx_images(info, bytes, name) : picture(info, bytes, name);
  if (options.invert) images = inverted(images);
  const Tensor outputs = outputs_of(*model.module, images, info.input());
  const auto classes = static_cast<std::ptrdiff_t>(info.classes.size());
  const std::vector<float> shares =
      probabilities(outputs.to_vector<float>(), classes, info.architecture.loss);
  std::vector<Prediction> all;
  for (auto row = shares.begin(); row != shares.end(); row += classes)
    all.push_back({.path = many ? fmt::format("{}#{}", name, all.size()) : name,
                   .chosen = static_cast<std::size_t>(std::max_element(row, row + classes) - row),
                   .probabilities = {row, row + classes}});
  return all;
}

std::string prediction_csv_header(const std::vector<std::string>& classes) {
  std::string text = "path,class,probability";
  for (const std::string& name : classes) text += fmt::format(",{}", csv_field(name));
  return text + "\n";
}

std::string prediction_csv_row(const Prediction& prediction, const std::vector<std::string>& classes) {
  std::string text =
      fmt::format("{},{},{:.6f}", csv_field(prediction.path), csv_field(classes[prediction.chosen]),
                  prediction.probabilities[prediction.chosen]);
  for (const float share : prediction.probabilities) text += fmt::format(",{:.6f}", share);
  return text + "\n";
}

}  // namespace tandem
