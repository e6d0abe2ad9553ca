#include "tandem/dist/reduce_arrays.h"

#include "tandem/core/check.h"

namespace tandem {
namespace {

void check_array(const Tensor& tensor, std::int64_t size) {
  check(tensor.defined() && tensor.dtype() == DType::f32 && tensor.is_contiguous(),
        "[reduce] expected contiguous tensors of f32");
  check(tensor.device() == cpu_device, "[reduce] expected tensors on the CPU, got one on {}",
        tensor.device().to_string());
  check(tensor.numel() == size, "[reduce] expected tensors of {} elements like the result, got one of {}",
        size, tensor.numel());
}

}  // namespace

ReduceArrays ReduceArrays::piece(std::int64_t begin, std::int64_t end) const {
  ReduceArrays part = *this;
  for (const float*& array : part.mine) array += begin;
  part.out += begin;
  part.size = end - begin;
  return part;
}

ReduceArrays reduce_arrays(std::shared_ptr<const TreeSum> tree, int rank, const Partials& mine,
                           const Tensor& out) {
  const int count = tree->count(rank);
  check(static_cast<int>(mine.sums.size()) == count,
        "[reduce] expected {} partial sums from rank {} of {} with {} shards, got {}", count, rank,
        tree->ranks(), mine.shards, mine.sums.size());
  ReduceArrays arrays{.tree = std::move(tree), .size = out.numel()};
  check_array(out, arrays.size);
  arrays.out = out.data<float>();
  for (const Tensor& sum : mine.sums) {
    check_array(sum, arrays.size);
    arrays.mine.push_back(sum.data<float>());
  }
  return arrays;
}

}  // namespace tandem
