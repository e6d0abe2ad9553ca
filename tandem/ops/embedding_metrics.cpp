#include "tandem/ops/embedding_metrics.h"

#include <cmath>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/normalize_rows.h"
#include "tandem/ops/nt_xent_kernel.h"
#include "tandem/ops/pow.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/unary.h"

namespace tandem {
namespace {

Tensor unit_rows(const Tensor& embeddings, const char* op) {
  common_device(op, {&embeddings});
  check(is_floating(embeddings.dtype()), "[{}] expected embeddings of a floating dtype, got {}", op,
        name_of(embeddings.dtype()));
  const DType compute = embeddings.dtype() == DType::f64 ? DType::f64 : DType::f32;
  return normalize_rows(cast(embeddings.detach(), compute));
}

}  // namespace

Tensor alignment(const Tensor& embeddings, double power) {
  check(embeddings.rank() == 2 && embeddings.size(0) > 0 && embeddings.size(0) % 2 == 0,
        "[alignment] expected embeddings (2n, d) with n above 0, got {}", embeddings.shape().to_string());
  check(std::isfinite(power) && power > 0, "[alignment] expected a finite power above 0, got {}", power);
  const Tensor z = unit_rows(embeddings, "alignment");
  const std::int64_t pairs = z.size(0) / 2;
  const Tensor difference = subtract(z.slice(0, 0, pairs), z.slice(0, pairs, 2 * pairs));
  return mean(pow(sum(square(difference), {1}), power / 2));
}

Tensor uniformity(const Tensor& embeddings, double scale) {
  check(embeddings.rank() == 2 && embeddings.size(0) > 1,
        "[uniformity] expected embeddings (n, d) of at least 2 rows, got {}", embeddings.shape().to_string());
  check(std::isfinite(scale) && scale > 0, "[uniformity] expected a finite scale above 0, got {}", scale);
  // ‖a − b‖² of unit vectors is 2 − 2 a · b, so the sum over a row is one of nt_xent()'s.
  const Tensor z = unit_rows(embeddings, "uniformity");
  const detail::NtXentSize size{.rows = z.size(0), .temperature = 1 / (2 * scale)};
  const Tensor statistics = detail::compare_rows(z, size, MatmulPrecision::fp32).statistics;
  const auto of_rows = [&](std::int64_t which) {
    return cast(statistics.slice(0, which, which + 1), DType::f64);
  };
  const Tensor log_sums =
      add(multiply(add(of_rows(detail::row_max), -1), 2 * scale), of_rows(detail::row_log_sum));
  const Tensor log_mean = add(log(mean(exp(log_sums))), -std::log(static_cast<double>(size.rows - 1)));
  return cast(log_mean, z.dtype());
}

}  // namespace tandem
