#include "tandem/ops/nt_xent.h"

#include <cmath>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/matmul_kernel.h"
#include "tandem/ops/normalize_rows_kernel.h"
#include "tandem/ops/nt_xent_kernel.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/row_kernel.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

using namespace row_ops;

constexpr double min_temperature = 1e-6;

// Loads a block of a row of similarities; the row itself becomes −∞.
template <class T>
[[gnu::always_inline]] inline void load_others(T* values, const T* similarities, std::int64_t row,
                                               std::int64_t begin, std::int64_t count) {
  load(values, similarities + begin, count);
  if (row >= begin && row < begin + count) values[row - begin] = -std::numeric_limits<T>::infinity();
}

template <class T>
[[gnu::always_inline]] inline void compare_row(const NtXentSize& size, T* statistics, const T* similarities,
                                               std::int64_t row) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  const std::int64_t partner = size.partner(row);
  const auto scale = static_cast<T>(1 / size.temperature);
  T values[block_size], others_max = lowest;  // of the rows except the partner
  for_each_block(
      size.rows, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load_others(values, similarities, row, begin, count);
        if (partner >= begin && partner < begin + count) values[partner - begin] = lowest;
        others_max = std::max(others_max, reduce_block(values, count, lowest, Max{}));
      });
  const T to_partner = similarities[partner], max = std::max(others_max, to_partner);
  double sum = 0;
  for_each_block(
      size.rows, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load_others(values, similarities, row, begin, count);
        for (std::int64_t i = 0; i < count; ++i) values[i] = exponential((values[i] - max) * scale);
        sum += static_cast<double>(reduce_block(values, count, T{0}, Sum{}));
      });
  const auto log_sum = static_cast<T>(std::log(sum));
  const auto write = [&](NtXentStatistic which, T value) { statistics[which * size.rows + row] = value; };
  write(row_loss, log_sum - (to_partner - max) * scale);
  write(row_hit, to_partner > others_max ? T{1} : T{0});
  write(row_max, max);
  write(row_log_sum, log_sum);
}

// p[r, c] + p[c, r] − 2 [c is the partner of r], times the scale; p is the softmax of a row.
template <class T>
[[gnu::always_inline]] inline void row_gradient(const NtXentSize& size, T* __restrict similarities,
                                                const T* __restrict statistics, std::int64_t row) {
  const T* const max = statistics + row_max * size.rows;
  const T* const log_sum = statistics + row_log_sum * size.rows;
  const auto scale = static_cast<T>(1 / size.temperature);
  const auto weight = static_cast<T>(1 / (static_cast<double>(size.rows) * size.temperature));
  const std::int64_t partner = size.partner(row);
  T of_row[block_size], of_column[block_size];
  for_each_block(
      size.rows, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        T* const s = similarities + begin;
        for (std::int64_t i = 0; i < count; ++i) {
          of_row[i] = exponential((s[i] - max[row]) * scale - log_sum[row]);
          of_column[i] = exponential((s[i] - max[begin + i]) * scale - log_sum[begin + i]);
        }
        for (std::int64_t i = 0; i < count; ++i) {
          const T target = begin + i == partner ? T{2} : T{0};
          s[i] = (of_row[i] + of_column[i] - target) * weight;
        }
      });
  similarities[row] = 0;
}

}  // namespace

template <>
void nt_xent_rows_kernel<Backend::cpu>(DType dtype, const NtXentSize& size, std::byte* statistics,
                                       const std::byte* similarities, StreamView) {
  on_dtype(NtXentTypes{}, dtype, "nt_xent", [&]<class T>() {
    for_each_row(
        size.rows, size.rows, [&](std::int64_t row) __attribute__((always_inline)) {
          compare_row(size, reinterpret_cast<T*>(statistics),
                      reinterpret_cast<const T*>(similarities) + row * size.rows, row);
        });
  });
}

template <>
void nt_xent_gradient_kernel<Backend::cpu>(DType dtype, const NtXentSize& size, std::byte* similarities,
                                           const std::byte* statistics, StreamView) {
  on_dtype(NtXentTypes{}, dtype, "nt_xent", [&]<class T>() {
    for_each_row(
        size.rows, size.rows, [&](std::int64_t row) __attribute__((always_inline)) {
          row_gradient(size, reinterpret_cast<T*>(similarities) + row * size.rows,
                       reinterpret_cast<const T*>(statistics), row);
        });
  });
}

ComparedRows compare_rows(const Tensor& z, const NtXentSize& size, MatmulPrecision precision) {
  const Device device = z.device();
  ComparedRows compared{.similarities = Tensor::empty({size.rows, size.rows}, z.dtype(), device),
                        .statistics = Tensor::empty({statistic_count, size.rows}, z.dtype(), device)};
  multiply_into(compared.similarities, z, z.transpose(), precision);
  on_backend(device, "nt_xent", [&]<Backend B>() {
    nt_xent_rows_kernel<B>(z.dtype(), size, compared.statistics.bytes(), compared.similarities.bytes(),
                           current_stream(device));
  });
  return compared;
}

namespace {

void check_embeddings(const Tensor& embeddings, const NtXentOptions& options) {
  common_device("nt_xent", {&embeddings});
  check(is_floating(embeddings.dtype()), "[nt_xent] expected embeddings of a floating dtype, got {}",
        name_of(embeddings.dtype()));
  check(embeddings.rank() == 2, "[nt_xent] expected embeddings (2n, d), got {}",
        embeddings.shape().to_string());
  check(embeddings.size(0) % 2 == 0,
        "[nt_xent] expected an even number of rows, two views of each image, got {}", embeddings.size(0));
  check(embeddings.size(0) >= 4, "[nt_xent] expected at least 2 pairs of rows, got {}",
        embeddings.size(0) / 2);
  check(std::isfinite(options.temperature) && options.temperature >= min_temperature,
        "[nt_xent] expected a finite temperature of at least {}, got {}", min_temperature,
        options.temperature);
  const ShardPart* const part = shard_part();
  check(!part,
        "[nt_xent] expected a whole batch, since every row is compared with all others, got a part of {} "
        "shards",
        part ? part->shards : 0);
}

// The gradient of the mean loss. Overwrites the similarities.
Tensor embedding_gradient(const NtXentSize& size, const NormalizedRows& normalized, ComparedRows compared,
                          MatmulPrecision precision) {
  const Tensor& z = normalized.rows;
  on_backend(z.device(), "nt_xent", [&]<Backend B>() {
    nt_xent_gradient_kernel<B>(z.dtype(), size, compared.similarities.bytes(), compared.statistics.bytes(),
                               current_stream(z.device()));
  });
  const Tensor dz = Tensor::empty(z.shape(), z.dtype(), z.device());
  multiply_into(dz, compared.similarities, z, precision);
  return normalize_rows_gradient(normalized, dz);
}

}  // namespace
}  // namespace tandem::detail

namespace tandem {

NtXentResult nt_xent_with_accuracy(const Tensor& embeddings, const NtXentOptions& options) {
  detail::check_embeddings(embeddings, options);
  const DType dtype = embeddings.dtype(), compute = dtype == DType::f64 ? DType::f64 : DType::f32;
  const detail::NtXentSize size{.rows = embeddings.size(0), .temperature = options.temperature};
  const MatmulPrecision precision = dtype == DType::bf16 ? MatmulPrecision::bf16 : matmul_precision();
  const detail::NormalizedRows normalized =
      detail::normalize_rows_with_norms(cast(embeddings.detach(), compute).contiguous());
  const detail::ComparedRows compared = detail::compare_rows(normalized.rows, size, precision);
  const Tensor means = mean(compared.statistics.slice(0, detail::row_loss, detail::row_hit + 1), {1});
  const auto mean_of = [&](std::int64_t which) { return means.slice(0, which, which + 1).reshape({}); };
  NtXentResult result{.loss = cast(mean_of(detail::row_loss), dtype),
                      .retrieval_accuracy = mean_of(detail::row_hit)};
  if (wants_grad(embeddings)) {
    const Tensor gradient = cast(detail::embedding_gradient(size, normalized, compared, precision), dtype);
    record(result.loss, "nt_xent", {&embeddings},
           [gradient](const Tensor& g) { return Gradients{multiply(gradient, g)}; });
  }
  return result;
}

Tensor nt_xent(const Tensor& embeddings, const NtXentOptions& options) {
  return nt_xent_with_accuracy(embeddings, options).loss;
}

}  // namespace tandem
