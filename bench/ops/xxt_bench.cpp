// X·Xᵀ in every version. FLOP/s counts the whole product, 2·n²·k, although symmetry saves half of it.
#include "tandem/ops/xxt.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

void add_size(std::int64_t n, DType dtype, Version version, Device device, MatmulPrecision precision) {
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  add_bench(fmt::format("xxt/{}x{}/{}/{}{}", n, n, name_of(dtype), name_of(version),
                        precision == MatmulPrecision::tf32 ? "/tf32" : ""),
            device,
            {.bytes = 2 * n * n * bytes,
             .items = n * n,
             .flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n)},
            [=]() -> Operation {
              const Tensor x = uniform({n, n}, -1, 1, {.seed = 1, .dtype = dtype, .device = device});
              return [=] { return xxt(x, version, precision); };
            });
}

[[maybe_unused]] const bool registered = [] {
  for (DType dtype : {DType::f32, DType::f64})
    for (const auto& [version, device] : bench_versions())
      for (const std::int64_t n : {128, 500, 1000, 4096}) {
        const bool tuned = version == tuned_version(device);
        if (n > 1000 && !tuned) continue;  // minutes
        add_size(n, dtype, version, device, MatmulPrecision::fp32);
        if (version == Version::cuda && dtype == DType::f32)
          add_size(n, dtype, version, device, MatmulPrecision::tf32);
      }
  return true;
}();

}  // namespace
}  // namespace tandem
