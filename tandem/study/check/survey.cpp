#include "tandem/study/check/survey.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "tandem/core/parallel.h"
#include "tandem/data/photo_store.h"
#include "tandem/files/read_file.h"
#include "tandem/image/decode.h"

namespace tandem {
namespace {

constexpr std::uint64_t max_file_bytes = max_image_file_bytes;
constexpr std::int64_t min_side = 48;  // of what is hashed, unless the image is smaller

void add_colors(const Image& rgb, ImageFacts& facts) {
  std::array<double, 3> sums{};
  double luma_sum = 0, luma_squares = 0, spread = 0;
  const std::size_t pixels = rgb.pixels.size() / 3;
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* const p = rgb.pixels.data() + 3 * i;
    for (std::size_t c = 0; c < 3; ++c) sums[c] += p[c];
    const double luma = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
    luma_sum += luma, luma_squares += luma * luma;
    spread += std::max({p[0], p[1], p[2]}) - std::min({p[0], p[1], p[2]});
  }
  const auto count = static_cast<double>(pixels);
  const auto level = [](double value) {
    return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
  };
  for (std::size_t c = 0; c < 3; ++c) facts.color[c] = level(sums[c] / count);
  const double mean = luma_sum / count;
  facts.contrast = level(std::sqrt(std::max(0.0, luma_squares / count - mean * mean)));
  facts.colorfulness = level(spread / count);
}

// `memory` is reused for pixels.
ImageFacts read_facts(const std::string& path, std::int64_t max_pixels, Image& memory) {
  const std::string file = read_file("decode", path, max_file_bytes);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  const LoadOptions options{.max_pixels = max_pixels, .rgb = true};
  const ImageInfo info = read_image_info(bytes, path, options);
  Image image = decode_scaled(bytes, path, {0, 0, info.width, info.height}, min_side, min_side, options,
                              std::move(memory));
  ImageFacts facts{.height = static_cast<std::int32_t>(info.height),
                   .width = static_cast<std::int32_t>(info.width),
                   .bytes = file.size(),
                   .content = content_hash(bytes),
                   .hashes = {}};
  // At a scale of 1/8, 500 pixels are 63, of which the last is half outside.
  const auto scale = [](std::int64_t reduced, std::int64_t whole) {
    const double factor =
        std::exp2(std::floor(std::log2(static_cast<double>(whole) / static_cast<double>(reduced)) + 0.5));
    return std::min(static_cast<double>(whole) / factor, static_cast<double>(reduced));
  };
  facts.hashes = hash_picture(image, scale(image.height, info.height), scale(image.width, info.width));
  add_colors(image, facts);
  memory = std::move(image);
  return facts;
}

}  // namespace

std::uint64_t content_hash(std::span<const std::uint8_t> bytes) {
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15ULL;
  std::uint64_t hash = bytes.size() * factor;
  const auto mix = [&](std::uint64_t word) { hash = (hash ^ word) * factor, hash ^= hash >> 32; };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  mix(rest);
  return hash;
}

Survey survey_images(const CheckedFiles& files, std::int64_t max_pixels, const CheckProgress& on_progress) {
  const std::int64_t count = std::ssize(files.files);
  Survey survey{.images = std::vector<ImageFacts>(files.files.size()), .not_read = {}};
  std::mutex mutex;
  std::int64_t done = 0;
  parallel_tasks(count, 1, [&] {
    return [&, memory = Image{}](std::int64_t i, std::int64_t) mutable {
      const auto at = static_cast<std::size_t>(i);
      const std::string path = files.path_of(files.files[at]).string();
      std::optional<SkippedSample> bad;
      try {
        survey.images[at] = read_facts(path, max_pixels, memory);
      } catch (const Error& error) {
        const BadSample sample = bad_sample(error, path, static_cast<std::int32_t>(i));
        bad = {.sample = sample.sample,
               .name = files.files[at].path,
               .reason = sample.reason,
               .kind = sample.kind};
      }
      const std::lock_guard lock(mutex);
      if (bad) survey.not_read.push_back(std::move(*bad));
      if (on_progress) on_progress(++done, count);
    };
  });
  std::ranges::sort(survey.not_read, {}, &SkippedSample::sample);
  return survey;
}

}  // namespace tandem
