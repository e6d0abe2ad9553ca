// Sums along the tree on CUDA. A kernel adds up one node of the result: it reads each operand once, keeps all
// partial sums of an element in registers and writes the element once.
#include "tandem/ops/shard_sums_kernel.h"

#include <cstdint>
#include <utility>

#include "tandem/core/on_dtype.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/tensor/copy.h"

namespace tandem::detail {
namespace {

constexpr int threads = elementwise_threads;
constexpr int max_operands = 64;
constexpr int max_depth = 16;  // of the sums that wait for their right half

template <class T, int count>
struct Operands {
  const T* at[count];
};

// Rounded to T after each addition, as if the sum were stored.
template <int width, class T>
__device__ Pack<T, width> add_packs(const Pack<T, width>& a, const Pack<T, width>& b) {
  using C = ComputeType<T>;
  Pack<T, width> sum;
#pragma unroll
  for (int i = 0; i < width; ++i) sum.value[i] = convert<T>(convert<C>(a.value[i]) + convert<C>(b.value[i]));
  return sum;
}

// The sum of operands [begin, begin + count) from element `at` on, divided as tree_middle() divides a node.
template <int width, int begin, int count, class T, int all>
__device__ Pack<T, width> sum_even(const Operands<T, all>& operands, std::int64_t at) {
  if constexpr (count == 1) {
    return load_pack<width>(operands.at[begin] + at);
  } else {
    const auto left = sum_even<width, begin, count / 2>(operands, at);
    return add_packs(left, sum_even<width, begin + count / 2, count - count / 2>(operands, at));
  }
}

// A node that is divided as one of single shards is. The bounds leave 64 registers to a thread,
// enough for several loads at a time.
template <int operand_count, class T>
__global__ void __launch_bounds__(threads, operand_count > 16 ? 2 : 4)
    sum_even_node(Operands<T, operand_count> operands, std::int64_t count, T* __restrict__ out) {
  constexpr int width = static_cast<int>(16 / sizeof(T));
  const std::int64_t step = std::int64_t{gridDim.x} * threads, packs = count / width;
  const std::int64_t first = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  for (std::int64_t pack = first; pack < packs; pack += step)
    store_pack(out + pack * width, sum_even<width, 0, operand_count>(operands, pack * width));
  for (std::int64_t i = packs * width + first; i < count; i += step)
    store_pack(out + i, sum_even<1, 0, operand_count>(operands, i));
}

// After operand i, the last merges[i] + 1 sums are added from right to left.
template <class T>
struct UnevenNode {
  Operands<T, max_operands> operands;
  std::uint8_t merges[max_operands];
  int operand_count;
};

template <int width, class T>
__device__ Pack<T, width> sum_uneven(const UnevenNode<T>& node, std::int64_t at) {
  Pack<T, width> waiting[max_depth];
  int depth = 0;
  for (int operand = 0; operand < node.operand_count; ++operand) {
    Pack<T, width> sum = load_pack<width>(node.operands.at[operand] + at);
    for (int merge = 0; merge < node.merges[operand]; ++merge) sum = add_packs(waiting[--depth], sum);
    waiting[depth++] = sum;
  }
  return waiting[0];
}

// Any node, with partial sums in local memory.
template <int width, class T>
__global__ void __launch_bounds__(threads)
    sum_uneven_node(UnevenNode<T> node, std::int64_t count, T* __restrict__ out) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads, packs = count / width;
  const std::int64_t first = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  for (std::int64_t pack = first; pack < packs; pack += step)
    store_pack(out + pack * width, sum_uneven<width>(node, pack * width));
  for (std::int64_t i = packs * width + first; i < count; i += step)
    store_pack(out + i, sum_uneven<1>(node, i));
}

// One node of the result: the operands from slot `first` on, and for each of them the number of additions
// whose last operand it is.
struct NodeProgram {
  std::size_t first;
  std::vector<int> merges;

  int depth() const {
    int depth = 0, deepest = 0;
    for (const int merge : merges) {
      deepest = std::max(deepest, ++depth);
      depth -= merge;
    }
    return deepest;
  }
};

std::vector<NodeProgram> programs_of(const TreePlan& plan, std::size_t operands) {
  std::vector<int> merges(operands, 0);
  std::vector<std::size_t> end_of(operands);  // of the operands that are summed in a slot so far
  for (std::size_t slot = 0; slot < operands; ++slot) end_of[slot] = slot + 1;
  for (const auto [to, from] : plan.additions) {
    const std::size_t end = end_of[static_cast<std::size_t>(from)];
    end_of[static_cast<std::size_t>(to)] = end;
    ++merges[end - 1];
  }
  std::vector<NodeProgram> programs;
  for (const std::size_t first : plan.results)
    programs.push_back(
        {first, std::vector<int>(merges.begin() + static_cast<std::ptrdiff_t>(first),
                                 merges.begin() + static_cast<std::ptrdiff_t>(end_of[first]))});
  return programs;
}

bool is_even(const NodeProgram& program) {
  const auto count = static_cast<std::int64_t>(program.merges.size());
  const TreePlan plan(count, {0, count}, single_shards({0, count}));
  return program.merges == programs_of(plan, program.merges.size()).front().merges;
}

// Calls f.operator()<count>() for the numbers of operands that have a kernel of their own.
template <class F>
bool on_operand_count(std::size_t count, F&& f) {
  const auto with = [&]<int... counts>(std::integer_sequence<int, counts...>) {
    return ((count == counts ? (f.template operator()<counts>(), true) : false) || ...);
  };
  return with(std::integer_sequence<int, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64>{});
}

template <class T>
void sum_node(const NodeProgram& program, std::span<const Tensor> sums, T* out, std::int64_t count,
              StreamView stream) {
  constexpr int width = static_cast<int>(16 / sizeof(T));
  const std::size_t operands = program.merges.size();
  const auto operand = [&](std::size_t i) -> const T* { return sums[program.first + i].data<T>(); };
  bool aligned = is_aligned<width>(out);
  for (std::size_t i = 0; i < operands; ++i) aligned = aligned && is_aligned<width>(operand(i));
  const auto launch_even = [&]<int operand_count>() {
    Operands<T, operand_count> even;
    for (std::size_t i = 0; i < operands; ++i) even.at[i] = operand(i);
    sum_even_node<operand_count>
        <<<blocks_for(count, threads * width), threads, 0, cuda_stream(stream)>>>(even, count, out);
  };
  if (!aligned || !is_even(program) || !on_operand_count(operands, launch_even)) {
    UnevenNode<T> node{};
    node.operand_count = static_cast<int>(operands);
    for (std::size_t i = 0; i < operands; ++i) {
      node.operands.at[i] = operand(i);
      node.merges[i] = static_cast<std::uint8_t>(program.merges[i]);
    }
    if (aligned)
      sum_uneven_node<width>
          <<<blocks_for(count, threads * width), threads, 0, cuda_stream(stream)>>>(node, count, out);
    else
      sum_uneven_node<1><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(node, count, out);
  }
  check_launch("sum_tree kernel");
}

}  // namespace

template <>
void sum_tree_kernel<Backend::cuda>(const TreePlan& plan, std::span<const Tensor> sums, const Tensor& out,
                                    StreamView stream) {
  const std::int64_t count = sums.front().numel();
  const std::vector<NodeProgram> programs = programs_of(plan, sums.size());
  for (std::size_t node = 0; node < programs.size(); ++node) {
    const NodeProgram& program = programs[node];
    const Tensor to = programs.size() == 1 ? out : out[static_cast<std::int64_t>(node)];
    if (program.merges.size() == 1) {
      copy_into(to, sums[program.first]);
      continue;
    }
    if (program.merges.size() <= max_operands && program.depth() <= max_depth) {
      on_dtype(FloatTypes{}, out.dtype(), "sum_tree",
               [&]<class T>() { sum_node<T>(program, sums, to.data<T>(), count, stream); });
      continue;
    }
    std::vector<Tensor> waiting;
    for (std::size_t i = 0; i < program.merges.size(); ++i) {
      Tensor sum = sums[program.first + i];
      for (int merge = 0; merge < program.merges[i]; ++merge) {
        sum = add(waiting.back(), sum);
        waiting.pop_back();
      }
      waiting.push_back(sum);
    }
    copy_into(to, waiting.front());
  }
}

}  // namespace tandem::detail
