#include "tandem/study/check/suspects.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "tandem/core/parallel.h"
#include "tandem/ops/gemm.h"
#include "tandem/train/logistic_regression.h"

namespace tandem {
namespace {

std::size_t as_size(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Evenly spaced elements.
std::vector<std::int64_t> thinned(const std::vector<std::int64_t>& rows, std::int64_t max) {
  const std::int64_t count = std::ssize(rows);
  if (count <= max) return rows;
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < max; ++i) some.push_back(rows[as_size((2 * i + 1) * count / (2 * max))]);
  return some;
}

// The classes that take part, numbered from 0; −1 for others.
struct UsedClasses {
  std::vector<std::int32_t> numbers;  // of each class
  std::vector<std::int32_t> classes;  // of each number
};

UsedClasses used_classes(const LabeledFeatures& images) {
  std::vector<std::int64_t> counts(as_size(images.classes));
  for (const std::int32_t label : images.labels)
    if (label >= 0) ++counts[as_size(label)];
  UsedClasses used;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    used.numbers.push_back(counts[i] >= label_folds ? static_cast<std::int32_t>(used.classes.size()) : -1);
    if (counts[i] >= label_folds) used.classes.push_back(static_cast<std::int32_t>(i));
  }
  return used;
}

// The fold of each row that has a number, else −1: the images of a class in turn, but copies together.
std::vector<std::int32_t> assign_folds(const LabeledFeatures& images, std::span<const std::int32_t> numbers,
                                       std::size_t classes) {
  std::vector<std::int32_t> folds(numbers.size(), -1), next(classes);
  std::unordered_map<std::int64_t, std::int32_t> fold_of_copies;
  for (std::size_t row = 0; row < folds.size(); ++row) {
    if (numbers[row] < 0) continue;
    std::int32_t& turn = next[as_size(numbers[row])];
    const auto [found, is_new] = fold_of_copies.try_emplace(images.copies[row], turn);
    if (is_new) turn = (turn + 1) % label_folds;
    folds[row] = found->second;
  }
  return folds;
}

}  // namespace

LabelCheck check_labels(const LabeledFeatures& images) {
  constexpr std::int64_t max_training = 20000;
  // A stronger penalty than that of a probe: some labels are wrong. Ranking needs no exact minimum.
  constexpr LogisticOptions options{.penalty = 3e-3, .tolerance = 1e-4, .max_iterations = 500};
  const UsedClasses used = used_classes(images);
  const auto classes = std::ssize(used.classes);
  LabelCheck result;
  if (classes < 2) return result;
  result.folds = label_folds;
  std::vector<std::int32_t> numbers;
  for (const std::int32_t label : images.labels)
    numbers.push_back(label < 0 ? -1 : used.numbers[as_size(label)]);
  const std::vector<std::int32_t> folds = assign_folds(images, numbers, as_size(classes));

  std::vector<double> probabilities(numbers.size() * as_size(classes));
  for (std::int32_t fold = 0; fold < label_folds; ++fold) {
    std::vector<std::int64_t> training, held_out;
    for (std::size_t row = 0; row < folds.size(); ++row)
      if (folds[row] >= 0)
        (folds[row] == fold ? held_out : training).push_back(static_cast<std::int64_t>(row));
    training = thinned(training, max_training);
    if (training.empty() || held_out.empty()) continue;
    std::vector<std::int32_t> labels;
    for (const std::int64_t row : training) labels.push_back(numbers[as_size(row)]);
    const Standardization standardize(images.x, training);
    const LogisticModel model = fit_logistic(standardize(images.x, training), labels, classes, options);
    constexpr std::size_t block = 4096;
    for (std::size_t begin = 0; begin < held_out.size(); begin += block) {
      const auto rows = std::span(held_out).subspan(begin, std::min(block, held_out.size() - begin));
      const std::vector<double> predicted = model.probabilities(standardize(images.x, rows));
      for (std::size_t i = 0; i < rows.size(); ++i)
        std::copy_n(predicted.begin() + static_cast<std::ptrdiff_t>(i) * classes, classes,
                    probabilities.begin() + rows[i] * classes);
    }
  }

  const auto row_of = [&](std::size_t row) { return probabilities.data() + row * as_size(classes); };
  std::vector<double> confidence(as_size(classes)), counts(as_size(classes));
  for (std::size_t row = 0; row < numbers.size(); ++row)
    if (numbers[row] >= 0)
      confidence[as_size(numbers[row])] += row_of(row)[numbers[row]], counts[as_size(numbers[row])] += 1;
  constexpr double enough = 0.7;
  for (std::size_t i = 0; i < confidence.size(); ++i)
    confidence[i] = std::min(enough, confidence[i] / counts[i]);
  std::int64_t correct = 0, all = 0;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    if (numbers[row] < 0) continue;
    const double* const row_probabilities = row_of(row);
    const auto predicted =
        std::max_element(row_probabilities, row_probabilities + classes) - row_probabilities;
    ++all;
    if (predicted == numbers[row])
      ++correct;
    else if (row_probabilities[predicted] >= confidence[as_size(predicted)])
      result.suspects.push_back({.row = static_cast<std::int64_t>(row),
                                 .suggested = used.classes[as_size(predicted)],
                                 .label_probability = row_probabilities[numbers[row]],
                                 .suggested_probability = row_probabilities[predicted]});
  }
  result.accuracy = static_cast<double>(correct) / static_cast<double>(all);
  std::ranges::stable_sort(result.suspects, std::greater(), [](const LabelSuspect& suspect) {
    return suspect.suggested_probability - suspect.label_probability;
  });
  return result;
}

std::vector<FeatureOutlier> find_outliers(const LabeledFeatures& images) {
  constexpr std::int64_t max_references = 2048, neighbors = 5, block = 256, min_images = 20;
  const std::int64_t count = images.x.count, width = images.x.width;
  if (count < min_images) return {};
  std::vector<std::int64_t> all(as_size(count));
  std::iota(all.begin(), all.end(), 0);
  const Standardization standardize(images.x, thinned(all, 10 * max_references));
  const auto rows_of = [&](std::span<const std::int64_t> rows) {
    const FeatureRows standardized = standardize(images.x, rows);
    return Features{standardized.count, standardized.width,
                    std::vector<float>(standardized.values.begin(), standardized.values.end())};
  };
  const auto squares_of = [](const Features& rows) {
    std::vector<double> squares;
    for (std::int64_t i = 0; i < rows.count; ++i)
      squares.push_back(std::inner_product(rows.row(i), rows.row(i) + rows.width, rows.row(i), 0.0));
    return squares;
  };
  const std::vector<std::int64_t> reference_rows = thinned(all, max_references);
  const Features references = rows_of(reference_rows);
  const std::vector<double> reference_squares = squares_of(references);

  std::vector<double> distances(as_size(count));
  std::vector<float> products;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    const Features rows = rows_of(std::span(all).subspan(as_size(begin), as_size(size)));
    const std::vector<double> squares = squares_of(rows);
    products.resize(as_size(size * references.count));
    detail::gemm<float>({.size = {.m = size, .n = references.count, .k = width},
                         .a = {rows.values.data(), width},
                         .b = {references.values.data(), width, true},
                         .c = products.data(),
                         .leading_dimension_c = references.count});
    for (std::int64_t i = 0; i < size; ++i) {
      std::vector<double> near;
      for (std::int64_t k = 0; k < references.count; ++k)
        if (images.copies[as_size(begin + i)] != images.copies[as_size(reference_rows[as_size(k)])])
          near.push_back(std::max(0.0, squares[as_size(i)] + reference_squares[as_size(k)] -
                                           2.0 * products[as_size(i * references.count + k)]));
      const auto used = std::min<std::ptrdiff_t>(neighbors, std::ssize(near));
      std::ranges::partial_sort(near, near.begin() + used);
      for (std::ptrdiff_t k = 0; k < used; ++k)
        distances[as_size(begin + i)] += std::sqrt(near[as_size(k)]) / static_cast<double>(used);
    }
  }

  const auto median = [](std::vector<double> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::ranges::nth_element(values, middle);
    return *middle;
  };
  const double center = median(distances);
  std::vector<double> deviations;
  for (const double distance : distances) deviations.push_back(std::abs(distance - center));
  constexpr double max_deviations = 5, min_distance = 1.25;
  const double limit =
      std::max(center + max_deviations * median(std::move(deviations)), min_distance * center);
  std::vector<FeatureOutlier> outliers;
  for (std::int64_t row = 0; row < count; ++row)
    if (center > 0 && distances[as_size(row)] > limit)
      outliers.push_back({row, distances[as_size(row)] / center});
  std::ranges::stable_sort(outliers, std::greater(), &FeatureOutlier::distance);
  return outliers;
}

}  // namespace tandem
