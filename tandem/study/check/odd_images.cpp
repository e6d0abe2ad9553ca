#include "tandem/study/check/odd_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "tandem/text/format_number.h"

namespace tandem {
namespace {

template <class T>
T median(std::vector<T> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::int64_t shorter_side(const ImageFacts& facts) {
  return std::min(facts.height, facts.width);
}
double aspect(const ImageFacts& facts) {
  return static_cast<double>(facts.width) / facts.height;
}
// At least 1.
double side_ratio(const ImageFacts& facts) {
  return std::max(aspect(facts), 1 / aspect(facts));
}

void add_frequent(std::span<const ImageFacts> images, CheckedSizes& sizes) {
  constexpr std::size_t max_sizes = 5;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> counts;
  for (const ImageFacts& facts : images)
    if (facts.was_read()) ++counts[{facts.height, facts.width}];
  for (const auto& [size, count] : counts) sizes.frequent.push_back({size.first, size.second, count});
  std::ranges::stable_sort(sizes.frequent, std::greater(), &SizeCount::images);
  if (sizes.frequent.size() > max_sizes) sizes.frequent.resize(max_sizes);
}

std::string odd_size(const ImageFacts& facts, std::int64_t median_side, double median_ratio) {
  if (4 * shorter_side(facts) < median_side)
    return fmt::format("{}x{}, small for a median of {}", facts.width, facts.height, median_side);
  constexpr double min_ratio = 3;
  if (side_ratio(facts) >= std::max(min_ratio, 2 * median_ratio))
    return fmt::format("{}x{}, sides {:.1f} : 1", facts.width, facts.height, side_ratio(facts));
  return {};
}

constexpr int max_gray = 3;  // of the colorfulness, in levels

bool is_gray(const ImageFacts& facts) {
  return facts.colorfulness <= max_gray;
}

// What the colors of most images are.
struct UsualColors {
  bool colored = false, gray = false;  // 95 % of the images are
  double red = 0, blue = 0;            // median of their differences to green
  double distance = 0;                 // median distance to that
};

double color_distance(const ImageFacts& facts, const UsualColors& usual) {
  return std::hypot(facts.color[0] - facts.color[1] - usual.red,
                    facts.color[2] - facts.color[1] - usual.blue);
}

UsualColors usual_colors(std::span<const ImageFacts> images) {
  constexpr double usual_share = 0.95;
  std::vector<double> reds, blues, distances;
  std::int64_t gray = 0;
  for (const ImageFacts& facts : images) {
    if (!facts.was_read()) continue;
    gray += is_gray(facts) ? 1 : 0;
    reds.push_back(facts.color[0] - facts.color[1]);
    blues.push_back(facts.color[2] - facts.color[1]);
  }
  const auto all = static_cast<double>(reds.size());
  UsualColors usual{.colored = static_cast<double>(gray) <= (1 - usual_share) * all,
                    .gray = static_cast<double>(gray) >= usual_share * all,
                    .red = median(reds),
                    .blue = median(blues)};
  for (const ImageFacts& facts : images)
    if (facts.was_read()) distances.push_back(color_distance(facts, usual));
  usual.distance = median(std::move(distances));
  return usual;
}

std::string odd_color(const ImageFacts& facts, const UsualColors& usual) {
  constexpr double dark = 12, bright = 243, min_distance = 60, max_distances = 6;
  constexpr int one_color = 2;
  const double brightness = 0.299 * facts.color[0] + 0.587 * facts.color[1] + 0.114 * facts.color[2];
  if (facts.contrast <= one_color && facts.colorfulness <= max_gray)
    return brightness < dark ? "black" : brightness > bright ? "white" : "plain gray";
  if (facts.contrast <= one_color) return "one color";
  if (brightness < dark) return "nearly black";
  if (brightness > bright) return "nearly white";
  if (usual.colored && is_gray(facts)) return "gray among colored images";
  if (usual.gray && !is_gray(facts)) return "colored among gray images";
  if (color_distance(facts, usual) > std::max(min_distance, max_distances * usual.distance))
    return fmt::format("unusual color, mean #{:02x}{:02x}{:02x}", facts.color[0], facts.color[1],
                       facts.color[2]);
  return {};
}

}  // namespace

CheckedImage checked_image(const CheckedFiles& files, std::span<const ImageFacts> images, std::int64_t file) {
  const CheckedFile& one = files.files[static_cast<std::size_t>(file)];
  const ImageFacts& facts = images[static_cast<std::size_t>(file)];
  return {.path = one.path,
          .part = files.parts[static_cast<std::size_t>(one.part)],
          .label = one.label < 0 ? "" : files.classes[static_cast<std::size_t>(one.label)],
          .height = facts.height,
          .width = facts.width};
}

CheckedSizes check_sizes(const CheckedFiles& files, std::span<const ImageFacts> images) {
  std::vector<std::int64_t> sides;
  std::vector<double> aspects, ratios;
  CheckedSizes sizes;
  for (const ImageFacts& facts : images) {
    if (!facts.was_read()) continue;
    sides.push_back(shorter_side(facts));
    aspects.push_back(aspect(facts));
    ratios.push_back(side_ratio(facts));
    const auto bucket =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(sides.back())) - 1);
    if (sizes.shorter_sides.size() <= bucket) sizes.shorter_sides.resize(bucket + 1);
    ++sizes.shorter_sides[bucket];
  }
  if (sides.empty()) return sizes;
  std::tie(sizes.min_side, sizes.max_side) = std::pair(std::ranges::min(sides), std::ranges::max(sides));
  std::tie(sizes.min_aspect, sizes.max_aspect) =
      std::pair(std::ranges::min(aspects), std::ranges::max(aspects));
  sizes.median_side = median(sides);
  sizes.median_aspect = median(aspects);
  const double median_ratio = median(ratios);
  add_frequent(images, sizes);
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!images[i].was_read()) continue;
    const std::string reason = odd_size(images[i], sizes.median_side, median_ratio);
    if (!reason.empty())
      sizes.odd.push_back({checked_image(files, images, static_cast<std::int64_t>(i)), reason});
  }
  return sizes;
}

std::vector<OddImage> check_colors(const CheckedFiles& files, std::span<const ImageFacts> images) {
  const UsualColors usual = usual_colors(images);
  std::vector<OddImage> odd;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!images[i].was_read()) continue;
    const std::string reason = odd_color(images[i], usual);
    if (!reason.empty()) odd.push_back({checked_image(files, images, static_cast<std::int64_t>(i)), reason});
  }
  return odd;
}

std::vector<CheckedClass> count_classes(const CheckedFiles& files, std::span<const ImageFacts> images) {
  std::vector<CheckedClass> classes;
  for (const std::string& name : files.classes)
    classes.push_back({name, std::vector<std::int64_t>(files.parts.size())});
  for (std::size_t i = 0; i < images.size(); ++i)
    if (const auto& [path, label, part] = files.files[i]; label >= 0 && images[i].was_read())
      ++classes[static_cast<std::size_t>(label)].images[static_cast<std::size_t>(part)];
  return classes;
}

std::vector<std::string> check_balance(const std::vector<CheckedClass>& classes,
                                       const std::vector<std::string>& parts) {
  constexpr std::int64_t large_ratio = 10;
  std::vector<std::string> sentences;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const std::string where = parts[part].empty() ? "" : fmt::format(" in {}", parts[part]);
    const CheckedClass *smallest = nullptr, *largest = nullptr;
    std::int64_t images = 0;
    for (const CheckedClass& one : classes) images += one.images[part];
    if (images == 0) continue;  // the part has no labels
    for (const CheckedClass& one : classes) {
      if (one.images[part] == 0) {
        sentences.push_back(fmt::format("Class '{}' has no images{}.", one.name, where));
        continue;
      }
      if (smallest == nullptr || one.images[part] < smallest->images[part]) smallest = &one;
      if (largest == nullptr || one.images[part] > largest->images[part]) largest = &one;
    }
    if (largest->images[part] >= large_ratio * smallest->images[part])
      sentences.push_back(fmt::format("'{}' has {} images{}, '{}' only {}.", largest->name,
                                      format_count(largest->images[part]), where, smallest->name,
                                      format_count(smallest->images[part])));
  }
  return sentences;
}

}  // namespace tandem
