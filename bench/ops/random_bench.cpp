// Random fills, in numbers per second.
#include "tandem/ops/random.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"

namespace tandem {
namespace {

void add_fill(const char* name, std::int64_t count, DType dtype, Device device, const Operation& fill) {
  add_bench(fmt::format("{}/{}/{}/{}", name, count, name_of(dtype), name_of(device)), device,
            {.bytes = count * static_cast<std::int64_t>(size_of(dtype)), .items = count},
            [=] { return fill; });
}

[[maybe_unused]] const bool registered = [] {
  for (Device device : bench_devices())
    for (const std::int64_t count : {1 << 12, 1 << 24}) {
      for (DType dtype : {DType::f32, DType::f64}) {
        const RandomOptions options{.seed = 1, .dtype = dtype, .device = device};
        add_fill("uniform", count, dtype, device, [=] { return uniform({count}, 0, 1, options); });
        add_fill("normal", count, dtype, device, [=] { return normal({count}, 0, 1, options); });
      }
      for (DType dtype : {DType::u8, DType::i64})
        add_fill("random_integers", count, dtype, device, [=] {
          return random_integers({count}, 0, 200, {.seed = 1, .dtype = dtype, .device = device});
        });
    }
  return true;
}();

}  // namespace
}  // namespace tandem
