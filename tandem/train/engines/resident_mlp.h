// The perceptron with one hidden layer, trained by a persistent kernel that runs many steps with all weights
// in shared memory. For networks so small that kernel launches or weight traffic would take longer than the
// arithmetic. docs/linear-layer.md has a diagram.
//
// The first layer's matrix is divided into blocks of 16 hidden neurons × a slice of the inputs, one thread
// block each: the blocks of a *group* have the same neurons, those of a *column* the same slice. A step:
//   1. every block multiplies the batch's slice by its part of the matrix: partial sums of its neurons;
//      — barrier of the group —
//   2. each block adds the partial sums of its share of the batch's rows, applies the activation and
//      multiplies by its part of the second layer: partial logits;
//      — barrier of the column —
//   3. it adds those, computes softmax and loss, and the gradient of the hidden layer;
//      — barrier of the group —
//   4. every block computes the gradient of its part of the matrix and updates it in shared memory.
// Every sum has a fixed order, so the same steps give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/optim/update_rule.h"
#include "tandem/train/engines/mlp_shape.h"

namespace tandem::detail {

// How the network is distributed over the thread blocks of a GPU.
struct ResidentPlan {
  int inputs = 0, hidden = 0, classes = 0, batch = 0;
  int groups = 0;       // blocks across the hidden neurons, 16 each
  int slices = 0;       // blocks across the inputs
  int slice_words = 0;  // words of 4 pixels per slice
  std::size_t shared_bytes = 0;

  static constexpr int neurons = 16;  // per group
  static constexpr int max_classes = 16;
  int blocks() const { return groups * slices; }
  // Size of the global memory through which the blocks exchange partial results.
  std::size_t exchange_floats() const;
};

struct ResidentLimits {
  int blocks = 0;                // that run at once, one per multiprocessor
  std::size_t shared_bytes = 0;  // per block
};

// The plan for a network and a batch size; groups is 0 if it does not fit on the GPU.
ResidentPlan plan_resident(int inputs, int hidden, int classes, int batch, int states,
                           const ResidentLimits& limits);

// Device pointers to weights (out, in) in the layout of a state dict, and to the optimizer's states in the
// same layout (null if the optimizer has none).
struct ResidentWeights {
  float *value = nullptr, *first = nullptr, *second = nullptr;
};

struct ResidentRun {
  ResidentWeights weight1, bias1, weight2, bias2;
  const std::uint8_t* images = nullptr;   // rows of `inputs` bytes, 16-aligned
  const std::int32_t* labels = nullptr;   // of each position of the run
  const std::int32_t* samples = nullptr;  // index of the image at each position of the run
  const StepHyperparameters<float>* hyperparameters = nullptr;  // of each step
  std::int64_t positions = 0;
  std::int64_t steps = 0;  // of `batch` rows; the last has the remainder
  float scale = 1;         // pixel p becomes p · scale
  MlpActivation activation = MlpActivation::sigmoid;
  LossKind loss = LossKind::cross_entropy;
  OptimizerOptions rule;
  float* exchange = nullptr;        // plan.exchange_floats()
  unsigned* counters = nullptr;     // 32 words per group and per column, all 0 before the run
  double* loss_sums = nullptr;      // one per slice: the losses of its rows are added
  std::int64_t* correct = nullptr;  // one per slice
};

void run_resident(const ResidentPlan& plan, const ResidentRun& run, StreamView stream);
ResidentLimits resident_limits(Device device);

}  // namespace tandem::detail
