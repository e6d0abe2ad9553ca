#include "tandem/study/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "tandem/core/check.h"
#include "tandem/ops/linear_products.h"
#include "tandem/ops/random.h"
#include "tandem/report/study_rows.h"
#include "tandem/study/compare_rows.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/study_case.h"
#include "tandem/text/format_number.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

// result[i][j] = Σₚ a(i, p) · b(p, j) + bias[j], each matrix with its strides.
struct ExactProduct {
  Tensor a, b, bias;

  double operator()(std::int64_t element) const {
    const std::int64_t i = element / b.size(1), j = element % b.size(1);
    double sum = bias.defined() ? static_cast<double>(bias.data<float>()[j]) : 0;
    for (std::int64_t p = 0; p < a.size(1); ++p)
      sum += static_cast<double>(a.data<float>()[i * a.strides()[0] + p * a.strides()[1]]) *
             static_cast<double>(b.data<float>()[p * b.strides()[0] + j * b.strides()[1]]);
    return sum;
  }
};

// The operands of one product, and how it is computed and checked.
struct Product {
  std::string_view name;
  void (*set)(StudyCase& study_case, const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Tensor& dy);
};

constexpr std::array<Product, 3> products = {
    {{"Y",
      [](StudyCase& c, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor&) {
        c.inputs = {x, weight, bias};
        c.compute = [](std::span<const Tensor> in, Version version) {
          return linear_output(in[0], in[1], in[2], version);
        };
        c.exact = ExactProduct{x, weight.transpose(), bias};
      }},
     {"dX",
      [](StudyCase& c, const Tensor&, const Tensor& weight, const Tensor&, const Tensor& dy) {
        c.inputs = {dy, weight};
        c.compute = [](std::span<const Tensor> in, Version version) {
          return linear_input_gradient(in[0], in[1], version);
        };
        c.exact = ExactProduct{dy, weight, {}};
      }},
     {"dW", [](StudyCase& c, const Tensor& x, const Tensor&, const Tensor&, const Tensor& dy) {
        c.inputs = {dy, x};
        c.compute = [](std::span<const Tensor> in, Version version) {
          return linear_weight_gradient(in[0], in[1], version);
        };
        c.exact = ExactProduct{dy.transpose(), x, {}};
      }}}};

const Product* find_product(std::string_view name) {
  const auto found = std::ranges::find(products, name, &Product::name);
  return found == products.end() ? nullptr : &*found;
}

StudyCase make_case(const std::string& name, const StudyOptions& options) {
  const LinearCase layer = parse_linear_case(name);
  const Product* product = find_product(layer.product);
  expect(product);
  const auto in = static_cast<double>(layer.inputs), out = static_cast<double>(layer.outputs),
             n = static_cast<double>(layer.batch);
  check_fits("linear", name, n * in + in * out + n * out + out);
  const auto random = [&](const Shape& shape, std::uint64_t stream) {
    return uniform(shape, -1, 1, {.seed = options.seed, .stream = stream});
  };
  const std::int64_t values =
      layer.batch * layer.inputs + layer.inputs * layer.outputs + layer.batch * layer.outputs;
  const std::int64_t steps = layer.batch * layer.inputs * layer.outputs;
  StudyCase made{.name = name,
                 .tolerance = 1e-5,
                 .bytes = values * static_cast<std::int64_t>(sizeof(float)),
                 .operations = 2 * steps,
                 .reference_steps = steps,
                 .peak_precision = PeakPrecision::f32};
  product->set(made, random({layer.batch, layer.inputs}, 0), random({layer.outputs, layer.inputs}, 1),
               random({layer.outputs}, 2), random({layer.batch, layer.outputs}, 3));
  return made;
}

// "784x200 batch 16" -> one case per product.
std::vector<std::string> one_per_product(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    if (!parse_linear_case(name).product.empty())
      all.push_back(name);
    else
      for (const Product& product : products) all.push_back(fmt::format("{} {}", name, product.name));
  }
  return all;
}

// The fastest correct row of that product; null if there is none.
const StudyRow* row_of(const std::vector<StudyRow>& rows, const LinearCase& layer, std::string_view product,
                       std::string_view version) {
  return fastest_row(rows, fmt::format("{} batch {} {}", layer.layer(), layer.batch, product), version);
}

// The time of all three products of the first layer that has them.
void add_product_finding(const std::vector<StudyRow>& rows, std::string_view version,
                         std::vector<std::string>& findings) {
  for (const StudyRow& row : rows) {
    const LinearCase layer = parse_linear_case(row.case_name);
    const StudyRow* y = row_of(rows, layer, "Y", version);
    const StudyRow* dx = row_of(rows, layer, "dX", version);
    const StudyRow* dw = row_of(rows, layer, "dW", version);
    if (!y || !dx || !dw) continue;
    const auto time = [](const StudyRow& product) {
      return format_number(product.value("median_ms"), Unit::milliseconds);
    };
    findings.push_back(
        fmt::format("The three products need the same number of operations; {} takes {} for Y, {} for dX and "
                    "{} for dW ({} batch {}).",
                    version, time(*y), time(*dx), time(*dw), layer.layer(), layer.batch));
    return;
  }
}

// How many operations per second the first product that was measured with several batch sizes does with the
// smallest and with the largest of them.
void add_batch_finding(const std::vector<StudyRow>& rows, std::string_view version,
                       std::vector<std::string>& findings) {
  for (const StudyRow& row : rows) {
    const LinearCase small = parse_linear_case(row.case_name);
    LinearCase large = small;
    bool is_smallest = true;
    for (const StudyRow& other : rows) {
      const LinearCase each = parse_linear_case(other.case_name);
      if (each.layer() != small.layer() || !row_of(rows, each, small.product, version)) continue;
      is_smallest = is_smallest && each.batch >= small.batch;
      large.batch = std::max(large.batch, each.batch);
    }
    const StudyRow* less = row_of(rows, small, small.product, version);
    if (!less || !is_smallest || large.batch == small.batch) continue;
    // The rates have the spreads of the times per sample.
    const auto per_sample = [&](const StudyRow& measured, std::int64_t batch) {
      StudyRow scaled = measured;
      for (const Figure figure : {Figure("median_ms"), Figure("min_ms"), Figure("max_ms")})
        if (measured.figures[figure])
          scaled.figures[figure] = measured.value(figure) / static_cast<double>(batch);
      return scaled;
    };
    const StudyRow& more = *row_of(rows, large, small.product, version);
    const StudyRow a = per_sample(*less, small.batch), b = per_sample(more, large.batch);
    const std::string rates = fmt::format(
        "{:.3g} GFLOP/s with a batch of {} and {:.3g} with {} ({}, {} of {})", less->value("gflop_per_s"),
        small.batch, more.value("gflop_per_s"), large.batch, version, small.product, small.layer());
    if (compare_speed(b, a) != Speed::unclear)
      findings.push_back(fmt::format("The larger batch gives {} the rate of the smaller: {}.",
                                     times_text(times_as_fast(b, a)), rates));
    else if (overlap_text(b, a).empty())
      findings.push_back("The batch size makes no difference to the rate: " + rates + ".");
    else
      findings.push_back(
          "The rates with both batch sizes are not clearly different, their spreads overlap: " + rates + ".");
    return;
  }
}

}  // namespace

std::string LinearCase::layer() const {
  return fmt::format("{}x{}", inputs, outputs);
}

LinearCase parse_linear_case(std::string_view text) {
  LinearCase parsed;
  constexpr std::string_view word = " batch ";
  const std::size_t end = std::min(text.find(word), text.size());
  bool valid = end < text.size();
  if (const auto sizes = parse_numbers<std::int64_t>(text.substr(0, end), 'x'); sizes && sizes->size() == 2) {
    parsed.inputs = sizes->front();
    parsed.outputs = sizes->back();
  }
  if (valid) {
    const std::string_view rest = text.substr(end + word.size());
    const std::size_t space = std::min(rest.find(' '), rest.size());
    parsed.batch = parse_number<std::int64_t>(rest.substr(0, space)).value_or(0);
    if (space < rest.size()) {
      parsed.product = rest.substr(space + 1);
      valid = find_product(parsed.product) != nullptr;
    }
  }
  check(valid && std::min({parsed.inputs, parsed.outputs, parsed.batch}) >= 1,
        "[study linear] expected a case such as \"784x200 batch 16\" or \"784x200 batch 16 dW\", got \"{}\"",
        text);
  return parsed;
}

std::vector<std::string> linear_findings(const std::vector<StudyRow>& rows) {
  std::vector<std::string> findings;
  for (const std::string_view version : {name_of(Version::parallel), name_of(Version::cuda)}) {
    add_product_finding(rows, version, findings);
    add_batch_finding(rows, version, findings);
  }
  return findings;
}

StudyReport study_linear(const StudyOptions& options) {
  StudyReport report{
      .study = "linear",
      .title = "The three products of a linear layer",
      .machine = report_facts(),
      .introduction =
          "A layer with inputs × outputs weights W and a bias b, in f32. Forward: Y = X·Wᵀ + b, one row per "
          "sample of the batch. Backward, from the gradient dY of the output: dX = dY·W for the layer before "
          "it, and dW = dYᵀ·X for the update of the weights. Each has batch × inputs × outputs "
          "multiply-adds. The tuned versions also keep tiles of the operands in registers and caches: what "
          "they gain is more than the gain of vector instructions. The share of peak is relative to the "
          "limit "
          "that applies: the bandwidth of a copy, or the arithmetic of a large matrix product."};
  report.versions = version_legend("one block per row of the result, one thread per column",
                                   "the product of cuBLAS, then one kernel that adds the bias");
  std::vector<std::string> names = options.cases;
  if (names.empty())
    names = options.quick
                ? std::vector<std::string>{"784x200 batch 16", "784x200 batch 256"}
                : std::vector<std::string>{"784x200 batch 16", "784x200 batch 1024", "1024x1024 batch 256"};
  if (options.cases.empty() && cuda_device_count() > 0 && !options.quick)
    names.push_back("4096x4096 batch 1024");
  report = run_cases(std::move(report), one_per_product(names), make_case, options);
  for (std::string& finding : linear_findings(report.rows)) report.findings.push_back(std::move(finding));
  return report;
}

}  // namespace tandem
