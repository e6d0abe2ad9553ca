// Element-wise maximum in every version, at the size of the study and at one larger than every cache.
#include "tandem/ops/maximum.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

[[maybe_unused]] const bool registered = [] {
  for (const std::int64_t side : {1000, 4096})
    for (DType dtype : {DType::u8, DType::i32, DType::f32, DType::f64})
      for (const auto& [version, device] : bench_versions())
        add_bench(
            fmt::format("maximum/{}x{}/{}/{}", side, side, name_of(dtype), name_of(version)), device,
            {.bytes = 3 * side * side * static_cast<std::int64_t>(size_of(dtype)), .items = side * side},
            [=, version = version, device = device]() -> Operation {
              const Tensor a = full({side, side}, 1, dtype, device);
              const Tensor b = full({side, side}, 2, dtype, device);
              return [=] { return maximum(a, b, version); };
            });
  return true;
}();

}  // namespace
}  // namespace tandem
