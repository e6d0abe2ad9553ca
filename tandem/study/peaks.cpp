#include "tandem/study/peaks.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "tandem/core/parallel.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/random.h"
#include "tandem/study/measure.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

constexpr MeasureOptions peak_measurement{.budget_ms = 300, .min_repetitions = 5, .max_repetitions = 30};

}  // namespace

double copy_gb_per_s(Device device, std::int64_t bytes) {
  static std::map<std::pair<std::string, std::int64_t>, double> measured;
  double& rate = measured[{device.to_string(), bytes}];
  if (rate == 0) {
    const ThreadCountScope all(usable_cpus());
    const Shape half{std::max<std::int64_t>(bytes / 2, 1)};
    const Tensor from = zeros(half, DType::u8, device), to = zeros(half, DType::u8, device);
    const Timing timing = measure(
        device, [&](int) { copy_into(to, from); }, peak_measurement);
    rate = 2.0 * static_cast<double>(half.numel()) / timing.min_ms / 1e6;
  }
  return rate;
}

double matmul_gflop_per_s(Device device, PeakPrecision peak_precision) {
  static std::map<std::pair<std::string, PeakPrecision>, double> measured;
  double& rate = measured[{device.to_string(), peak_precision}];
  if (rate == 0) {
    const ThreadCountScope all(usable_cpus());
    const std::int64_t n = device.is_cuda() ? 8192 : thread_count() > 4 ? 4096 : 1536;
    const DType dtype = peak_precision == PeakPrecision::f64 ? DType::f64 : DType::f32;
    const Tensor a = uniform({n, n}, -1, 1, {.seed = 1, .dtype = dtype, .device = device});
    const MatmulPrecisionScope precision(peak_precision == PeakPrecision::tf32 ? MatmulPrecision::tf32
                                                                               : MatmulPrecision::fp32);
    const Timing timing = measure(
        device, [&](int) { matmul(a, a); }, peak_measurement);
    rate =
        2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / timing.min_ms / 1e6;
  }
  return rate;
}

}  // namespace tandem
