#include "tandem/augment/photo_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/image/contact_sheet.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/correlate.h"
#include "tandem/ops/unary.h"

namespace tandem {
namespace {

PhotoFilter edges(std::string name, std::string_view kernel) {
  PhotoFilter filter = parse_filter(kernel, true);
  filter.name = std::move(name);
  filter.summary = "edges";
  return filter;
}

PhotoFilter blur(std::string name, std::string_view kernel) {
  PhotoFilter filter = parse_filter(kernel, false);
  filter.name = std::move(name);
  filter.summary = "blur";
  return filter;
}

Tensor to_tensor(const Image& gray, Device device) {
  return cast(Tensor::from(gray.pixels, {gray.height, gray.width}).to(device), DType::f32);
}

Image to_image(const Tensor& response) {
  const std::vector<float> values = response.to_vector<float>();
  Image image = make_image(response.size(0), response.size(1), 1);
  if (values.empty()) return image;
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const float low = *min, range = *max - low;
  const float scale = range > 0 ? 255.0f / range : 0.0f;
  parallel_for(static_cast<std::int64_t>(values.size()), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      image.pixels[i] = static_cast<std::uint8_t>((values[i] - low) * scale + 0.5f);
  });
  return image;
}

// The kernel's values, one line per row.
std::string kernel_text(const PhotoFilter& filter) {
  const std::vector<float> values = filter.kernel.to_vector<float>();
  const auto columns = static_cast<std::size_t>(filter.kernel.size(1));
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{}", i % columns == 0 ? "\n" : "  ", values[i]);
  return text;
}

}  // namespace

const Registry<PhotoFilter>& builtin_filters() {
  static const Registry<PhotoFilter> filters(
      "filter", {
                    edges("sobel1", "1 0 -1; 2 0 -2; 1 0 -1"),
                    edges("sobel2", "3 0 -3; 10 0 -10; 3 0 -3"),
                    edges("sobel3", "1 0 -1; 2 0 -2; 1 0 -1; 2 0 -2; 1 0 -1"),
                    edges("sobel4", "1 0 0 0 -1; 2 0 0 0 -2; 1 0 0 0 -1; 2 0 0 0 -2; 1 0 0 0 -1"),
                    blur("ring", "1 1 1; 1 0 1; 1 1 1"),
                });
  return filters;
}

PhotoFilter parse_filter(std::string_view text, bool gradient) {
  constexpr std::size_t max_values = 1 << 20;
  check(text.size() <= 32 * max_values, "[filter] expected a kernel of at most {} numbers", max_values);
  std::vector<float> values;
  std::int64_t rows = 0, columns = -1, row_length = 0;
  const auto end_row = [&] {
    check(columns < 0 || row_length == columns,
          "[filter] expected kernel rows of equal length, got {} and {} numbers", columns, row_length);
    columns = row_length;
    row_length = 0;
    ++rows;
  };
  const auto is_separator = [](char c) {
    return std::string_view("; ,\t\n").find(c) != std::string_view::npos;
  };
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    if (*at == ';') {
      end_row();
      ++at;
    } else if (is_separator(*at)) {
      ++at;
    } else {
      const std::string_view word(at, static_cast<std::size_t>(std::find_if(at, end, is_separator) - at));
      const char* const digits = at + (word.starts_with('+') && !word.starts_with("+-") ? 1 : 0);
      float value = 0;
      const auto [next, error] = std::from_chars(digits, end, value);
      check(error == std::errc{} && std::isfinite(value) && next == word.data() + word.size(),
            "[filter] expected numbers in the kernel, got '{}'", word.substr(0, 20));
      values.push_back(value);
      ++row_length;
      at = next;
    }
  }
  if (row_length > 0) end_row();  // a trailing semicolon does not begin a row
  check(columns > 0, "[filter] expected a kernel such as \"1 0 -1; 2 0 -2; 1 0 -1\", got '{}'", text);
  return {
      .name = "kernel", .summary = "", .kernel = Tensor::from(values, {rows, columns}), .gradient = gradient};
}

Tensor filter_response(const Tensor& gray, const PhotoFilter& filter) {
  const Tensor kernel = filter.kernel.to(gray.device());
  const Tensor across = correlate(gray, kernel);
  if (!filter.gradient) return across;
  return sqrt(add(square(across), square(correlate(gray, kernel.transpose()))));
}

Tensor filter_values(const Image& photo, const PhotoFilter& filter, Device device) {
  return filter_response(to_tensor(to_gray(photo), device), filter);
}

Image apply_filter(const Image& photo, const PhotoFilter& filter, Device device) {
  return to_image(filter_values(photo, filter, device));
}

Image filter_sheet(const Image& photo, Device device) {
  const Tensor gray = to_tensor(to_gray(photo), device);
  std::vector<LabeledImage> images = {{photo, "photograph"}};
  for (const PhotoFilter& filter : builtin_filters().rows())
    images.push_back({to_image(filter_response(gray, filter)), filter.name + kernel_text(filter)});
  return contact_sheet(images, {.columns = 3});
}

}  // namespace tandem
