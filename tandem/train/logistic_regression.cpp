#include "tandem/train/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/ops/gemm.h"

namespace tandem {
namespace {

using Vector = std::vector<double>;

// x with a column of ones, which the biases multiply.
FeatureRows with_ones(const FeatureRows& x) {
  FeatureRows result{.count = x.count, .width = x.width + 1};
  result.values.resize(static_cast<std::size_t>(result.count * result.width), 1.0);
  for (std::int64_t i = 0; i < x.count; ++i) std::copy_n(x.row(i), x.width, result.row(i));
  return result;
}

// rows × classes.
void compute_logits(const FeatureRows& x, const Vector& weights, std::int64_t classes, Vector& logits) {
  logits.resize(static_cast<std::size_t>(x.count * classes));
  detail::gemm<double>({.size = {.m = x.count, .n = classes, .k = x.width},
                        .a = {x.values.data(), x.width},
                        .b = {weights.data(), x.width, true},
                        .c = logits.data(),
                        .leading_dimension_c = classes});
}

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// y += factor · x
void add(Vector& y, double factor, const Vector& x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

double max_magnitude(const Vector& x) {
  double max = 0;
  for (const double value : x) max = std::max(max, std::abs(value));
  return max;
}

// The last steps and changes of the gradient, which approximate the inverse of the Hessian.
class StepHistory {
 public:
  bool empty() const { return pairs_.empty(); }

  void push(Vector step, Vector change) {
    constexpr std::size_t max_pairs = 12;
    const double curvature = dot(step, change);
    if (!(curvature > 0)) return;  // rounding: the loss is convex
    pairs_.push_back({std::move(step), std::move(change), curvature});
    if (pairs_.size() > max_pairs) pairs_.pop_front();
  }

  // −(approximate inverse Hessian) · gradient, by the two-loop recursion.
  Vector direction(const Vector& gradient) const {
    Vector result = gradient, factors(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      factors[i] = dot(pairs_[i].step, result) / pairs_[i].curvature;
      add(result, -factors[i], pairs_[i].change);
    }
    const double scale = empty() ? 1 / std::max(1.0, std::sqrt(dot(gradient, gradient)))
                                 : pairs_.back().curvature / dot(pairs_.back().change, pairs_.back().change);
    for (double& value : result) value *= scale;
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      add(result, factors[i] - dot(pairs_[i].change, result) / pairs_[i].curvature, pairs_[i].step);
    for (double& value : result) value = -value;
    return result;
  }

 private:
  struct Pair {
    Vector step, change;
    double curvature;
  };
  std::deque<Pair> pairs_;
};

}  // namespace

namespace detail {

LogisticLoss::LogisticLoss(const FeatureRows& x, std::span<const std::int32_t> labels, std::int64_t classes,
                           double penalty, const std::vector<double>& class_weights)
    : x_(with_ones(x)), labels_(labels.begin(), labels.end()), classes_(classes), penalty_(penalty) {
  expect(x.count > 0 && x.width > 0 && x.count == std::ssize(labels) && classes > 1 && penalty >= 0);
  expect(class_weights.empty() || std::ssize(class_weights) == classes);
  double total = 0;
  for (const std::int32_t label : labels) {
    expect(label >= 0 && label < classes);
    shares_.push_back(class_weights.empty() ? 1 : class_weights[static_cast<std::size_t>(label)]);
    total += shares_.back();
  }
  for (double& share : shares_) share /= total;
}

double LogisticLoss::operator()(const std::vector<double>& weights, std::vector<double>& gradient) {
  compute_logits(x_, weights, classes_, logits_);
  double loss = 0;
  // The logits become the gradient of the loss in the logits.
  for (std::int64_t i = 0; i < x_.count; ++i) {
    const std::span<double> row(logits_.data() + i * classes_, static_cast<std::size_t>(classes_));
    const double share = shares_[static_cast<std::size_t>(i)];
    double& own = row[static_cast<std::size_t>(labels_[static_cast<std::size_t>(i)])];
    const double max = *std::ranges::max_element(row), own_logit = own - max;
    double sum = 0;
    for (double& value : row) sum += value = std::exp(value - max);
    loss += (std::log(sum) - own_logit) * share;
    for (double& value : row) value *= share / sum;
    own -= share;
  }
  gradient.resize(weights.size());
  gemm<double>({.size = {.m = classes_, .n = x_.width, .k = x_.count},
                .a = {logits_.data(), classes_, true},
                .b = {x_.values.data(), x_.width},
                .c = gradient.data(),
                .leading_dimension_c = x_.width});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if ((i + 1) % static_cast<std::size_t>(x_.width) == 0) continue;  // a bias
    loss += penalty_ / 2 * weights[i] * weights[i];
    gradient[i] += penalty_ * weights[i];
  }
  return loss;
}

}  // namespace detail

LogisticModel fit_logistic(const FeatureRows& x, std::span<const std::int32_t> labels, std::int64_t classes,
                           const LogisticOptions& options) {
  constexpr double sufficient_decrease = 1e-4, rounding = 1e-14, min_step = 1e-10;
  detail::LogisticLoss loss_of(x, labels, classes, options.penalty, options.class_weights);
  LogisticModel model{.classes = classes, .weights = Vector(loss_of.size())};
  Vector gradient, next_gradient;
  StepHistory history;
  double loss = loss_of(model.weights, gradient);
  while (max_magnitude(gradient) > options.tolerance && model.iterations < options.max_iterations) {
    ++model.iterations;
    Vector step = history.direction(gradient);
    const double slope = dot(step, gradient);
    double size = 1, next_loss = 0;
    Vector next;
    for (;; size /= 2) {
      next = model.weights;
      add(next, size, step);
      next_loss = loss_of(next, next_gradient);
      if (next_loss <= loss + sufficient_decrease * size * slope + rounding * std::abs(loss)) break;
      if (size < min_step) return model;
    }
    for (double& value : step) value *= size;
    Vector change = next_gradient;
    add(change, -1, gradient);
    history.push(std::move(step), std::move(change));
    model.weights.swap(next);
    gradient.swap(next_gradient);
    loss = next_loss;
  }
  model.converged = max_magnitude(gradient) <= options.tolerance;
  return model;
}

std::vector<double> LogisticModel::logits(const FeatureRows& x) const {
  Vector rows;
  if (x.count > 0) compute_logits(with_ones(x), weights, classes, rows);
  return rows;
}

std::vector<std::int32_t> LogisticModel::predict(const FeatureRows& x) const {
  std::vector<std::int32_t> predictions;
  const Vector rows = logits(x);
  for (auto row = rows.begin(); row != rows.end(); row += classes)
    predictions.push_back(static_cast<std::int32_t>(std::max_element(row, row + classes) - row));
  return predictions;
}

std::vector<double> LogisticModel::probabilities(const FeatureRows& x) const {
  Vector rows = logits(x);
  for (auto row = rows.begin(); row != rows.end(); row += classes) {
    const double max = *std::max_element(row, row + classes);
    double sum = 0;
    for (auto value = row; value != row + classes; ++value) sum += * value = std::exp(*value - max);
    for (auto value = row; value != row + classes; ++value) *value /= sum;
  }
  return rows;
}

}  // namespace tandem
