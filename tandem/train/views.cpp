#include "tandem/train/views.h"

#include <algorithm>
#include <cstdint>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/image/resize.h"
#include "tandem/text/parse_number.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/predict_images.h"

namespace tandem {
namespace {

Image image_of(const Tensor& images, std::int64_t index) {
  Image image = make_image(images.size(1), images.size(2), static_cast<int>(images.size(3)));
  const std::int64_t bytes = images.numel() / images.size(0);
  std::copy_n(images.data<std::uint8_t>() + index * bytes, bytes, image.pixels.begin());
  return image;
}

// The part of an image at one of five places: the center, then the corners.
Image crop_of(const Image& image, int place) {
  const auto part = [](std::int64_t side) { return std::max<std::int64_t>(7 * side / 8, 1); };
  const std::int64_t height = part(image.height), width = part(image.width);
  const std::int64_t down = image.height - height, right = image.width - width;
  const bool is_low = place == 3 || place == 4, is_right = place == 2 || place == 4;
  const std::int64_t top = place == 0 ? down / 2 : is_low ? down : 0;
  const std::int64_t left = place == 0 ? right / 2 : is_right ? right : 0;
  Image crop = make_image(height, width, image.channels);
  for (std::int64_t y = 0; y < height; ++y)
    std::copy_n(image.pixels.begin() + ((top + y) * image.width + left) * image.channels,
                width * image.channels, crop.pixels.begin() + y * width * image.channels);
  return resize(crop, image.height, image.width);
}

Image mirrored(const Image& image) {
  Image result = image;
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x)
      std::copy_n(image.pixels.begin() + (y * image.width + image.width - 1 - x) * image.channels,
                  image.channels, result.pixels.begin() + (y * image.width + x) * image.channels);
  return result;
}

}  // namespace

int parse_views(const std::string& text) {
  if (text == "none") return 1;
  if (text == "flip") return 2;
  const std::optional<int> count = parse_number<int>(text);
  check(count && *count >= 2 && *count <= max_views, "expected none, flip or a number from 2 to {}, got '{}'",
        max_views, text);
  return *count;
}

Tensor view_of(const Tensor& images, int index) {
  expect(index >= 0 && index < max_views && images.dtype() == DType::u8);
  if (index == 0) return images;
  if (images.rank() == 3)  // gray ones of an idx file
    return view_of(images.reshape({images.size(0), images.size(1), images.size(2), 1}), index)
        .reshape(images.shape());
  expect(images.rank() == 4);
  const Tensor from = images.contiguous(), made = Tensor::empty(images.shape(), DType::u8);
  const std::int64_t count = images.size(0), bytes = count == 0 ? 0 : images.numel() / count;
  parallel_tasks(count, 1, [&] {
    return [&](std::int64_t i, std::int64_t) {
      Image image = image_of(from, i);
      if (index >= 2) image = crop_of(image, index / 2 - 1);
      if (index % 2 == 1) image = mirrored(image);
      std::copy_n(image.pixels.begin(), bytes, made.data<std::uint8_t>() + i * bytes);
    };
  });
  return made;
}

std::vector<float> mean_probabilities(Module& module, const ModelInfo& info, const Tensor& images,
                                      int views) {
  std::vector<double> sums;
  for (int view = 0; view < views; ++view) {
    const std::vector<float> shares =
        class_probabilities(info, compute_outputs(module, view_of(images, view), info.input()))
            .to_vector<float>();
    if (views == 1) return shares;
    sums.resize(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) sums[i] += static_cast<double>(shares[i]);
  }
  std::vector<float> means;
  for (const double sum : sums) means.push_back(static_cast<float>(sum / views));
  return means;
}

}  // namespace tandem
