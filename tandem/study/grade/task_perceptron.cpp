// The tasks of the perceptron: batches with a remainder, Xavier initialization, gradients.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/linear.h"
#include "tandem/ops/one_hot.h"
#include "tandem/ops/random.h"
#include "tandem/study/grade/task_cases.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

struct SizesAndBatch {
  std::vector<std::int64_t> sizes;
  std::int64_t batch = 0;
};

// "784,200,10 batch 16".
std::optional<SizesAndBatch> parse_sizes(const std::string& text, std::size_t count, bool with_batch) {
  constexpr std::string_view word = " batch ";
  const std::size_t at = with_batch ? text.find(word) : text.size();
  if (at == std::string::npos) return std::nullopt;
  const auto sizes = parse_numbers<std::int64_t>(std::string_view(text).substr(0, at), ',');
  const auto batch =
      with_batch ? parse_number<std::int64_t>(std::string_view(text).substr(at + word.size())) : 1;
  constexpr std::int64_t max = 1 << 20;
  const auto valid = [](std::int64_t value) { return value >= 1 && value <= max; };
  if (!sizes || sizes->size() != count || !batch || !valid(*batch) || !std::ranges::all_of(*sizes, valid))
    return std::nullopt;
  return SizesAndBatch{*sizes, *batch};
}

SizesAndBatch parse_or_throw(const char* task, const char* example, const std::string& text,
                             std::size_t count, bool with_batch) {
  const auto parsed = parse_sizes(text, count, with_batch);
  check(parsed.has_value(), "[task {}] expected a case such as \"{}\", got \"{}\"", task, example, text);
  return *parsed;
}

double correlation_with_next(const std::vector<double>& values, double mean, double variance) {
  double sum = 0;
  for (std::size_t i = 1; i < values.size(); ++i) sum += (values[i] - mean) * (values[i - 1] - mean);
  return sum / (static_cast<double>(values.size()) * variance);
}

// What is wrong with weights that should be uniform in [-bound, bound]. Limits are 6 standard errors wide.
std::string xavier_problem(const std::vector<double>& weights, double bound) {
  const double count = static_cast<double>(weights.size());
  double mean = 0, square = 0, largest = 0;
  for (const double w : weights) {
    if (!std::isfinite(w)) return fmt::format("a weight is {}", w);
    mean += w / count;
    square += w * w / count;
    largest = std::max(largest, std::abs(w));
  }
  if (largest > bound * (1 + 1e-6))
    return fmt::format("a weight has the magnitude {:.5f}, the bound is {:.5f}", largest, bound);
  const double variance = bound * bound / 3, error = 6 / std::sqrt(count);
  if (std::abs(mean) > error * std::sqrt(variance))
    return fmt::format("the mean is {:.5f}, expected about 0", mean);
  if (std::abs(square - variance) > error * variance)  // the standard error is 0.9 of it
    return fmt::format("the variance is {:.3g}, expected about {:.3g}", square, variance);
  if (std::abs(correlation_with_next(weights, mean, variance)) > error)
    return "neighboring weights depend on each other";
  return {};
}

}  // namespace

TaskCase make_batches_case(const std::string& name) {
  const SizesAndBatch parsed = parse_or_throw("batches", "1000 batch 16", name, 1, true);
  const std::int64_t count = parsed.sizes[0], batch = parsed.batch;
  TaskCase made{.name = name,
                .format = {.function = "batches",
                           .inputs = {scalar_format(DType::i64), scalar_format(DType::i64)},
                           .outputs = {array_format(DType::i64, count, 2), scalar_format(DType::i64)}}};
  made.inputs = [count, batch](std::uint64_t) { return std::vector{i64_scalar(count), i64_scalar(batch)}; };
  made.expected = [count, batch](std::span<const Tensor>) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(2 * count), 0);
    std::int64_t batches = 0;
    for (std::int64_t first = 0; first < count; first += batch, ++batches) {
      rows[static_cast<std::size_t>(2 * batches)] = first;
      rows[static_cast<std::size_t>(2 * batches + 1)] = std::min(batch, count - first);
    }
    return std::vector{Tensor::from(rows, {count, 2}), i64_scalar(batches)};
  };
  return made;
}

TaskCase make_xavier_case(const std::string& name) {
  const SizesAndBatch parsed = parse_or_throw("xavier", "784,200", name, 2, false);
  const std::int64_t in = parsed.sizes[0], out = parsed.sizes[1];
  TaskCase made{
      .name = name,
      .format = {.function = "xavier",
                 .inputs = {scalar_format(DType::i64), scalar_format(DType::i64), scalar_format(DType::i64)},
                 .outputs = {array_format(DType::f64, out, in)}}};
  check_case_size(made);
  made.inputs = [in, out](std::uint64_t seed) {
    return std::vector{i64_scalar(in), i64_scalar(out), i64_scalar(sample_integer(seed, 0, 1, 1 << 30))};
  };
  const double bound = std::sqrt(6.0 / static_cast<double>(in + out));
  made.check = [bound, last = std::make_shared<std::vector<double>>()](std::span<const Tensor>,
                                                                       std::span<const Tensor> outputs) {
    std::vector<double> weights = outputs[0].to_vector<double>();
    if (weights == *last) return std::string("the weights are those of another seed");
    std::string problem = xavier_problem(weights, bound);
    *last = std::move(weights);
    return problem;
  };
  return made;
}

TaskCase make_gradients_case(const std::string& name) {
  const SizesAndBatch parsed = parse_or_throw("gradients", "20,12,5 batch 7", name, 3, true);
  const std::int64_t n = parsed.batch, in = parsed.sizes[0], hidden = parsed.sizes[1], out = parsed.sizes[2];
  const auto format = [](std::int64_t rows, std::int64_t columns) {
    return array_format(DType::f64, rows, columns);
  };
  const std::vector<ArrayFormat> weights{format(hidden, in), format(1, hidden), format(out, hidden),
                                         format(1, out)};
  TaskCase made{.name = name, .format = {.function = "gradients", .inputs = {format(n, in), format(n, out)}}};
  made.format.inputs.insert(made.format.inputs.end(), weights.begin(), weights.end());
  made.format.outputs = weights;
  made.tolerance = 1e-10;
  check_case_size(made);
  made.inputs = [formats = made.format.inputs, n, out](std::uint64_t seed) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < formats.size(); ++i)
      all.push_back(uniform({formats[i].rows, formats[i].columns}, -1, 1,
                            {.seed = seed, .stream = i, .dtype = DType::f64}));
    const Tensor labels = random_integers({n}, 0, out, {.seed = seed, .stream = formats.size()});
    all[1] = one_hot(labels, out, DType::f64);
    return all;
  };
  made.expected = [n](std::span<const Tensor> given) {
    const std::vector<double> one_hot_rows = given[1].to_vector<double>();
    const auto classes = static_cast<std::ptrdiff_t>(given[1].size(1));
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto row = one_hot_rows.begin() + i * classes;
      labels.push_back(std::max_element(row, row + classes) - row);
    }
    std::vector<Tensor> parameters;
    for (std::size_t i = 2; i < 6; ++i) parameters.push_back(given[i].clone().set_requires_grad());
    const auto flat = [](const Tensor& row) { return row.reshape(-1); };
    const Tensor activations = sigmoid(linear(given[0], parameters[0], flat(parameters[1])));
    backward(
        cross_entropy(linear(activations, parameters[2], flat(parameters[3])), Tensor::from(labels, {n})));
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : parameters) gradients.push_back(parameter.grad());
    return gradients;
  };
  return made;
}

}  // namespace tandem
