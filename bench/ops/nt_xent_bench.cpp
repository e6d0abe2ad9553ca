// NT-Xent, forward alone and with its gradient, for the batches of contrastive pretraining.
#include "tandem/ops/nt_xent.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

struct Arithmetic {
  const char* name;
  DType dtype;
  MatmulPrecision precision;
};

[[maybe_unused]] const bool registered = [] {
  constexpr std::int64_t columns = 128;
  for (const bool with_gradient : {false, true})
    for (const std::int64_t rows : {512, 2048, 4096})
      for (const Arithmetic& arithmetic : {Arithmetic{"f32", DType::f32, MatmulPrecision::fp32},
                                           {"tf32", DType::f32, MatmulPrecision::tf32},
                                           {"bf16", DType::bf16, MatmulPrecision::bf16}})
        for (Device device : bench_devices()) {
          if (!device.is_cuda() && arithmetic.precision == MatmulPrecision::tf32) continue;
          const double products = with_gradient ? 2 : 1;
          add_bench(fmt::format("nt_xent{}/{}x{}/{}/{}", with_gradient ? "_gradient" : "", rows, columns,
                                arithmetic.name, name_of(device)),
                    device,
                    {.bytes = (with_gradient ? 5 : 2) * rows * rows * 4,
                     .items = rows,
                     .flops = products * 2 * static_cast<double>(rows * rows * columns)},
                    [=]() -> Operation {
                      Tensor x = normal({rows, columns}, 0, 1,
                                        {.seed = 1, .dtype = arithmetic.dtype, .device = device});
                      if (with_gradient) x.set_requires_grad();
                      return [=] {
                        const MatmulPrecisionScope scope(arithmetic.precision);
                        return nt_xent(x);
                      };
                    });
        }
  return true;
}();

}  // namespace
}  // namespace tandem
