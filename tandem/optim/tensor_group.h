// Tensors of one dtype that one fused pass moves towards others, or copies from them: what averages of
// weights (weight_average.h, lookahead.h) consist of.
#pragma once

#include <cstddef>
#include <vector>

#include "tandem/optim/fused_update.h"
#include "tandem/tensor/named_tensor.h"

namespace tandem::detail {

class TensorGroup {
 public:
  // Those of `tensors` with the dtype, which stay where they are.
  TensorGroup(const NamedTensors& tensors, DType dtype, Device device);

  // Applies the rule to each with its tensor of `sources`, which has the order of `tensors`.
  void update(OtherRule rule, const NamedTensors& sources, const Tensor& hyperparameters);

 private:
  std::vector<std::size_t> members_;  // indices in the list
  UpdateTable table_;
  std::vector<const std::byte*> sources_;
};

// Detached copies.
NamedTensors clones(const NamedTensors& tensors);
NamedTensors joined(NamedTensors first, const NamedTensors& second);

// `op` is the tag of errors. Throws Error unless there are parameters, on one device, all f32 or all f64.
void check_averaged(const char* op, const NamedTensors& parameters);
// Throws Error unless the tensors are contiguous and still match those that were averaged before.
void check_same(const char* op, const NamedTensors& averages, const NamedTensors& current);

}  // namespace tandem::detail
