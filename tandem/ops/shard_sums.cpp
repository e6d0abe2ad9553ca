#include "tandem/ops/shard_sums.h"

#include <algorithm>
#include <cstdint>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/reduce_kernel.h"
#include "tandem/ops/shard_sums_kernel.h"
#include "tandem/tensor/copy.h"

namespace tandem::detail {
namespace {

// All additions of a few elements, before the next ones, so that partial sums stay in the cache.
template <class T>
void sum_tree_cpu(const TreePlan& plan, std::span<const Tensor> sums, const Tensor& out) {
  using C = ComputeType<T>;
  constexpr std::int64_t chunk = 1024;
  const std::int64_t count = sums.front().numel();
  parallel_for((count + chunk - 1) / chunk, 16, [&](std::int64_t first_chunk, std::int64_t last_chunk) {
    const Buffer scratch = make_scratch<T>(static_cast<std::int64_t>(sums.size()) * chunk);
    std::vector<const T*> values(sums.size());
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for (std::int64_t at = first_chunk * chunk; at < std::min(last_chunk * chunk, count); at += chunk) {
        const std::int64_t size = std::min(chunk, count - at);
        for (std::size_t i = 0; i < sums.size(); ++i) values[i] = sums[i].data<T>() + at;
        for (const TreeAddition& addition : plan.additions) {
          const auto to = static_cast<std::size_t>(addition.to),
                     from = static_cast<std::size_t>(addition.from);
          const T *const a = values[to], *const b = values[from];
          T* const sum = as<T>(scratch) + addition.to * chunk;
          for (std::int64_t i = 0; i < size; ++i) sum[i] = convert<T>(convert<C>(a[i]) + convert<C>(b[i]));
          values[to] = sum;
        }
        for (std::size_t node = 0; node < plan.results.size(); ++node)
          std::copy_n(values[plan.results[node]], size,
                      out.data<T>() + static_cast<std::int64_t>(node) * count + at);
      }
    });
  });
}

}  // namespace

template <>
void sum_tree_kernel<Backend::cpu>(const TreePlan& plan, std::span<const Tensor> sums, const Tensor& out,
                                   StreamView) {
  on_dtype(FloatTypes{}, out.dtype(), "sum_tree", [&]<class T>() { sum_tree_cpu<T>(plan, sums, out); });
}

}  // namespace tandem::detail

namespace tandem {

Tensor sum_tree(std::int64_t shards, IndexRange range, const std::vector<IndexRange>& nodes,
                std::span<const Tensor> sums) {
  check(!nodes.empty() && sums.size() == nodes.size(),
        "[sum_tree] expected one tensor for each of {} nodes, got {}", nodes.size(), sums.size());
  const Tensor& first = sums.front();
  for (const Tensor& sum : sums) {
    common_device("sum_tree", {&first, &sum});
    common_dtype("sum_tree", {&first, &sum});
    check(sum.shape() == first.shape() && sum.is_contiguous(),
          "[sum_tree] expected contiguous tensors of shape {}, got {}", first.shape().to_string(),
          sum.shape().to_string());
  }
  const detail::TreePlan plan(shards, range, nodes);
  const auto count = static_cast<std::int64_t>(plan.results.size());
  if (count == 1 && sums.size() == 1) return first;
  Tensor out = Tensor::empty(count == 1 ? first.shape() : detail::stacked(count, first.shape()),
                             first.dtype(), first.device());
  if (first.numel() > 0)
    on_backend(first.device(), "sum_tree", [&]<Backend B>() {
      detail::sum_tree_kernel<B>(plan, sums, out, current_stream(first.device()));
    });
  return out;
}

namespace detail {

Shape stacked(std::int64_t count, const Shape& shape) {
  Dims sizes = Dims::filled(shape.rank() + 1, count);
  for (int axis = 0; axis < shape.rank(); ++axis) sizes[axis + 1] = shape[axis];
  return Shape(sizes);
}

bool is_stack(const ShardPart& part, const Tensor& gradient, const Shape& shape) {
  return gradient.rank() == shape.rank() + 1 && gradient.shape() == stacked(part.own.count(), shape);
}

Tensor stack_shards(const ShardPart& part, const Shape& shape, const StackOptions& options,
                    const SumShard& sum) {
  const std::vector<IndexRange> ranges = shard_ranges(part, options.size, options.op);
  Tensor stack = Tensor::empty(stacked(part.own.count(), shape), options.dtype, options.device);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Tensor to = stack[static_cast<std::int64_t>(i)];
    if (ranges[i].count() > 0)
      sum(to, ranges[i]);
    else
      clear(to);
  }
  return stack;
}

namespace {

// The pools of a device give out whole blocks of the system, which are aligned to this many bytes at least.
constexpr std::uintptr_t block_alignment = 256;

bool is_like_new(const Tensor& tensor) {
  return !tensor.device().is_cuda() ||
         (tensor.is_contiguous() && reinterpret_cast<std::uintptr_t>(tensor.bytes()) % block_alignment == 0);
}

}  // namespace

Tensor aligned_slice(const Tensor& x, IndexRange range) {
  const Tensor slice = x.slice(0, range.begin, range.end);
  return is_like_new(slice) ? slice : slice.clone();
}

void write_aligned(const Tensor& to, const std::function<void(const Tensor&)>& write) {
  if (is_like_new(to)) return write(to);
  const Tensor aligned = Tensor::empty(to.shape(), to.dtype(), to.device());
  write(aligned);
  copy_into(to, aligned);
}

Tensor broadcast_gradient(const Tensor& gradient, const Shape& shape) {
  const ShardPart* const part = shard_part();
  const int rank = gradient.rank();
  const bool sums_rows = rank > shape.rank() || (rank > 0 && shape[0] == 1 && gradient.size(0) != 1);
  if (!part || !sums_rows) return sum_to(gradient, shape);
  return stack_shards(
      *part, shape,
      {.op = "broadcast", .size = gradient.size(0), .dtype = gradient.dtype(), .device = gradient.device()},
      [&](const Tensor& to, IndexRange range) { sum_into(to, gradient.slice(0, range.begin, range.end)); });
}

}  // namespace detail
}  // namespace tandem
