// Reductions over all axes, over rows and over columns: the three memory access patterns.
#include "tandem/ops/reduce.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

struct Case {
  const char* name;
  Tensor (*reduce)(const Tensor& x);
};

const std::vector<Case> cases = {
    {"sum/all", [](const Tensor& x) { return sum(x); }},
    {"sum/rows", [](const Tensor& x) { return sum(x, {1}); }},
    {"sum/columns", [](const Tensor& x) { return sum(x, {0}); }},
    {"max/rows", [](const Tensor& x) { return max(x, {1}); }},
    {"argmax/rows", [](const Tensor& x) { return argmax(x, 1); }},
};

[[maybe_unused]] const bool registered = [] {
  for (const Case& one : cases)
    for (const auto& [rows, columns] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{128, 10}, {2048, 2048}, {100000, 16}})
      for (DType dtype : {DType::f32, DType::f64})
        for (Device device : bench_devices())
          add_bench(
              fmt::format("{}/{}x{}/{}/{}", one.name, rows, columns, name_of(dtype), name_of(device)), device,
              {.bytes = rows * columns * static_cast<std::int64_t>(size_of(dtype)), .items = rows * columns},
              [=, rows = rows, columns = columns]() -> Operation {
                const Tensor x =
                    uniform({rows, columns}, -1, 1, {.seed = 1, .dtype = dtype, .device = device});
                return [=] { return one.reduce(x); };
              });
  return true;
}();

}  // namespace
}  // namespace tandem
