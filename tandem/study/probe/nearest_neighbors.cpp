#include "tandem/study/probe/nearest_neighbors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/gemm.h"

namespace tandem {
namespace {

// Rows of length 1; a row of zeros stays one.
Features unit_rows(const Features& x) {
  Features result = x;
  for (std::int64_t i = 0; i < x.count; ++i) {
    const std::span<float> row(result.row(i), static_cast<std::size_t>(x.width));
    const double length = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
    if (length > 0)
      for (float& value : row) value = static_cast<float>(value / length);
  }
  return result;
}

std::int32_t vote(std::span<const float> similarities, const LabeledRows& labeled, std::size_t k,
                  std::vector<std::size_t>& order) {
  constexpr double temperature = 0.07;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return similarities[a] != similarities[b] ? similarities[a] > similarities[b] : a < b;
                    });
  std::vector<double> votes(static_cast<std::size_t>(labeled.classes));
  for (const std::size_t i : std::span(order).first(k))
    votes[static_cast<std::size_t>(labeled.labels[i])] += std::exp((similarities[i] - 1) / temperature);
  return static_cast<std::int32_t>(std::ranges::max_element(votes) - votes.begin());
}

}  // namespace

std::vector<std::int32_t> nearest_neighbor_classes(const LabeledRows& labeled, const Features& queries,
                                                   std::int64_t k) {
  const std::int64_t count = labeled.x.count, width = labeled.x.width;
  expect(count > 0 && k >= 1 && k <= count && queries.width == width && count == std::ssize(labeled.labels));
  std::vector<std::int32_t> classes(static_cast<std::size_t>(queries.count));
  if (classes.empty()) return classes;
  const Features rows = unit_rows(labeled.x), unit_queries = unit_rows(queries);
  std::vector<float> similarities(static_cast<std::size_t>(queries.count * count));
  detail::gemm<float>({.size = {.m = queries.count, .n = count, .k = width},
                       .a = {unit_queries.values.data(), width},
                       .b = {rows.values.data(), width, true},
                       .c = similarities.data(),
                       .leading_dimension_c = count});
  parallel_for(queries.count, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::size_t> order(static_cast<std::size_t>(count));
    for (std::int64_t i = begin; i < end; ++i)
      classes[static_cast<std::size_t>(i)] =
          vote({similarities.data() + i * count, order.size()}, labeled, static_cast<std::size_t>(k), order);
  });
  return classes;
}

}  // namespace tandem
