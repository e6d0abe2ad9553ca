// Softmax and log-softmax over the last axis, from 10 to 100,000 classes.
#include "tandem/ops/softmax.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

[[maybe_unused]] const bool registered = [] {
  for (const bool logarithm : {false, true})
    for (const auto& [rows, columns] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{16, 10}, {1024, 10}, {256, 1000}, {64, 100000}})
      for (DType dtype : {DType::f32, DType::bf16})
        for (Device device : bench_devices())
          add_bench(fmt::format("{}/{}x{}/{}/{}", logarithm ? "log_softmax" : "softmax", rows, columns,
                                name_of(dtype), name_of(device)),
                    device,
                    {.bytes = 2 * rows * columns * static_cast<std::int64_t>(size_of(dtype)),
                     .items = rows * columns},
                    [=, rows = rows, columns = columns]() -> Operation {
                      const Tensor x =
                          uniform({rows, columns}, -5, 5, {.seed = 1, .dtype = dtype, .device = device});
                      return [=] { return logarithm ? log_softmax(x) : softmax(x); };
                    });
  return true;
}();

}  // namespace
}  // namespace tandem
