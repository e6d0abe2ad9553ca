// Sigmoid, tanh and ReLU on the activations of a small network and on a tensor larger than every cache.
#include "tandem/ops/activation.h"

#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

[[maybe_unused]] const bool registered = [] {
  for (Activation activation : {Activation::sigmoid, Activation::tanh, Activation::relu})
    for (const std::int64_t count : {16 * 200, 4096 * 4096})
      for (DType dtype : {DType::f32, DType::f64, DType::bf16})
        for (Device device : bench_devices())
          add_bench(fmt::format("{}/{}/{}/{}", name_of(activation), count, name_of(dtype), name_of(device)),
                    device, {.bytes = 2 * count * static_cast<std::int64_t>(size_of(dtype)), .items = count},
                    [=]() -> Operation {
                      const Tensor x = uniform({count}, -5, 5, {.seed = 1, .dtype = dtype, .device = device});
                      return [=] {
                        return activation == Activation::sigmoid ? sigmoid(x)
                               : activation == Activation::tanh  ? tanh(x)
                                                                 : relu(x);
                      };
                    });
  return true;
}();

}  // namespace
}  // namespace tandem
