// Correlation in every version, for the kernel sizes with performance targets and two that use the slower
// code paths (11×11 and 2×15).
#include "tandem/ops/correlate.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

[[maybe_unused]] const bool registered = [] {
  for (const std::int64_t side : {1024, 4096})
    for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {3, 3}, {5, 5}, {7, 7}, {9, 9}, {11, 11}, {2, 15}})
      for (DType dtype : {DType::f32, DType::f64})
        for (const auto& [version, device] : bench_versions()) {
          if (side > 1024 && version == Version::reference) continue;  // takes seconds per call
          const std::int64_t pixels = side * side;
          add_bench(fmt::format("correlate/{}x{}/{}x{}/{}/{}", side, side, height, width, name_of(dtype),
                                name_of(version)),
                    device,
                    {.bytes = 2 * pixels * static_cast<std::int64_t>(size_of(dtype)),
                     .items = pixels,
                     .flops = 2.0 * static_cast<double>(pixels * height * width)},
                    [=, height = height, width = width, version = version, device = device]() -> Operation {
                      const RandomOptions options{.seed = 1, .dtype = dtype, .device = device};
                      const Tensor image = uniform({side, side}, 0, 1, options);
                      const Tensor kernel = uniform({height, width}, -1, 1, options);
                      return [=] { return correlate(image, kernel, version); };
                    });
        }
  return true;
}();

}  // namespace
}  // namespace tandem
