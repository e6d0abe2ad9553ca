// Multinomial logistic regression with an L2 penalty, in f64: the weights depend on nothing but the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/train/feature_rows.h"

namespace tandem {

struct LogisticOptions {
  // With 10 to 50 images per class of MNIST, Fashion-MNIST and plates, random and trained features, this was
  // within 0.3 points of the best of 1e-6 … 0.1 on test images. Choosing it by cross-validation on 10 images
  // per class was worse on all but one, by up to 2.4 points.
  double penalty = 3e-5;       // of half the sum of the squared weights, per image; not of the biases
  double tolerance = 1e-6;     // the fit ends when no component of the gradient is larger
  int max_iterations = 10000;  // a bound for data that are no features
  std::vector<double> class_weights = {};  // of the rows of each class in the mean; empty: 1 each
};

struct LogisticModel {
  std::int64_t classes = 0;
  std::vector<double> weights = {};  // classes × (features + 1), row-major; the last column are the biases
  int iterations = 0;
  bool converged = false;

  // Rows × classes; their softmax are the probabilities.
  std::vector<double> logits(const FeatureRows& x) const;
  // The class with the largest logit, for each row.
  std::vector<std::int32_t> predict(const FeatureRows& x) const;
  // The probability of each class, rows × classes.
  std::vector<double> probabilities(const FeatureRows& x) const;
};

// Minimizes the weighted mean cross-entropy of the rows + penalty / 2 · Σ weight² from zero weights by L-BFGS
// (Liu and Nocedal 1989). Labels are from 0 to classes − 1.
LogisticModel fit_logistic(const FeatureRows& x, std::span<const std::int32_t> labels, std::int64_t classes,
                           const LogisticOptions& options = {});

namespace detail {

// The function that fit_logistic() minimizes.
class LogisticLoss {
 public:
  LogisticLoss(const FeatureRows& x, std::span<const std::int32_t> labels, std::int64_t classes,
               double penalty, const std::vector<double>& class_weights = {});

  std::size_t size() const { return static_cast<std::size_t>(classes_ * x_.width); }
  // The value at these weights; writes the gradient.
  double operator()(const std::vector<double>& weights, std::vector<double>& gradient);

 private:
  FeatureRows x_;  // with a column of ones
  std::vector<std::int32_t> labels_;
  std::vector<double> shares_;  // of each row in the mean
  std::int64_t classes_;
  double penalty_;
  std::vector<double> logits_;
};

}  // namespace detail
}  // namespace tandem
