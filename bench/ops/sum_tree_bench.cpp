// Sums of the gradients of shards along the tree, beside a copy of as many bytes.
#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/ops/random.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

constexpr std::int64_t weights = 11'181'640;  // of a ResNet-18 with 10 classes

Tensor values(const Shape& shape, DType dtype, Device device) {
  return uniform(shape, -1, 1, {.seed = 1, .dtype = dtype, .device = device});
}

[[maybe_unused]] const bool registered = [] {
  for (const std::int64_t shards : {2, 3, 4, 8, 12, 16, 64})
    for (DType dtype : {DType::f32, DType::bf16})
      for (Device device : bench_devices()) {
        const auto bytes = (shards + 1) * weights * static_cast<std::int64_t>(size_of(dtype));
        const auto name = [&](const char* what) {
          return fmt::format("{}/{}x{}/{}/{}", what, shards, weights, name_of(dtype), name_of(device));
        };
        add_bench(name("sum_tree"), device, {.bytes = bytes, .items = shards * weights}, [=]() -> Operation {
          const Tensor stack = values({shards, weights}, dtype, device);
          std::vector<Tensor> sums;
          for (std::int64_t shard = 0; shard < shards; ++shard) sums.push_back(stack[shard]);
          return [=] { return sum_tree(shards, {0, shards}, single_shards({0, shards}), sums); };
        });
        // Half of the bytes are read, half are written.
        const std::int64_t count = bytes / 2 / static_cast<std::int64_t>(size_of(dtype));
        add_bench(name("sum_tree copy"), device, {.bytes = bytes, .items = count}, [=]() -> Operation {
          const Tensor from = values({count}, dtype, device), to = Tensor::empty({count}, dtype, device);
          return [=] {
            copy_into(to, from);
            return to;
          };
        });
      }
  return true;
}();

}  // namespace
}  // namespace tandem
