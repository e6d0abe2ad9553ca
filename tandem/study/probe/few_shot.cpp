#include "tandem/study/probe/few_shot.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/core/philox.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of the mean of independent values.
double squared_error(std::span<const double> values) {
  const double center = mean(values), count = static_cast<double>(values.size());
  if (values.size() < 2) return 0;
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return sum / (count - 1) / count;
}

// The 97.5 % quantile of Student's t distribution.
double student_quantile(std::int64_t degrees) {
  constexpr std::array<double, 10> table{12.706, 4.303, 3.182, 2.776, 2.571,
                                         2.447,  2.365, 2.306, 2.262, 2.228};
  if (degrees <= std::ssize(table)) return table[static_cast<std::size_t>(degrees - 1)];
  // Expansion in 1 / degrees around the normal quantile z: below 0.001 off.
  const double z = 1.959964, n = static_cast<double>(degrees);
  return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
}

}  // namespace

std::vector<std::int64_t> choose_labeled(std::span<const std::int32_t> labels,
                                         const std::vector<std::string>& classes, std::int64_t per_class,
                                         const LabeledDraw& draw) {
  std::vector<std::vector<std::int64_t>> of_class(classes.size());
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= 0) of_class[static_cast<std::size_t>(labels[i])].push_back(static_cast<std::int64_t>(i));
  std::vector<std::int64_t> chosen;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    std::vector<std::int64_t>& images = of_class[label];
    check(per_class >= 1 && per_class <= std::ssize(images),
          "[probe] expected {} or more training images of every class, got {} of '{}'",
          std::max<std::int64_t>(per_class, 1), images.size(), one_line(classes[label]));
    const RandomKey key{.seed = draw.seed,
                        .epoch = static_cast<std::uint32_t>(draw.number),
                        .sample = static_cast<std::uint32_t>(label),
                        .operation = 0x50524F42};
    // The beginning of a Fisher–Yates shuffle.
    for (std::size_t i = 0; i < static_cast<std::size_t>(per_class); ++i) {
      const std::uint32_t word = key.block(static_cast<std::uint32_t>(i)).word[0];
      std::swap(images[i], images[i + to_below(word, static_cast<std::uint32_t>(images.size() - i))]);
      chosen.push_back(images[i]);
    }
  }
  return chosen;
}

std::vector<double> accuracies(const Correct& correct) {
  std::vector<double> result;
  for (const auto& draw : correct)
    result.push_back(std::accumulate(draw.begin(), draw.end(), 0.0) / static_cast<double>(draw.size()));
  return result;
}

ProbeDifference paired_difference(const Correct& correct, const Correct& base) {
  expect(correct.size() == base.size() && !correct.empty());
  const std::size_t draws = correct.size(), images = correct[0].size();
  std::vector<double> of_draw(draws), of_image(images);
  for (std::size_t draw = 0; draw < draws; ++draw)
    for (std::size_t i = 0; i < images; ++i) {
      const double difference = static_cast<double>(correct[draw][i]) - static_cast<double>(base[draw][i]);
      of_draw[draw] += difference / static_cast<double>(images);
      of_image[i] += difference / static_cast<double>(draws);
    }
  ProbeDifference result{.mean = mean(of_draw)};
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const double half = draws < 2 ? nan
                                : student_quantile(static_cast<std::int64_t>(draws) - 1) *
                                      std::sqrt(squared_error(of_draw) + squared_error(of_image));
  result.interval = {result.mean - half, result.mean + half};
  return result;
}

}  // namespace tandem
