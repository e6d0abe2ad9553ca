// The perceptron with one hidden layer, trained by one kernel that stays on the GPU for many steps with all
// weights in shared memory. Meant for networks so small that launching kernels, or moving weights, would take
// longer than the arithmetic. docs/linear-layer.md draws it.
//
// The first layer's matrix is cut into blocks of 16 hidden neurons × a slice of the inputs, one thread block
// each: a *group* shares neurons, a *column* shares a slice. A step:
//   1. every block multiplies the batch's slice by its part of the matrix: partial sums of its neurons;
//      — the group meets —
//   2. each block adds up the partial sums of its share of the batch's rows, applies the activation and
//      multiplies by its part of the second layer: partial logits;
//      — the column meets —
//   3. it adds up those, takes softmax and loss, and goes back to the hidden layer's gradient;
//      — the group meets —
//   4. every block computes the gradient of its part of the matrix and updates it where it lies.
// Every sum has a fixed order, so the same steps give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/nn/loss.h"
#include "tandem/ops/activation.h"
#include "tandem/optim/update_rule.h"

namespace tandem {

// How the network is laid over the thread blocks of a GPU.
struct ResidentPlan {
  int inputs = 0, hidden = 0, classes = 0, batch = 0;
  int groups = 0;       // blocks across the hidden neurons, 16 each
  int slices = 0;       // blocks across the inputs
  int slice_words = 0;  // a slice is so many words of 4 pixels
  std::size_t shared_bytes = 0;

  static constexpr int neurons = 16;  // of a group
  static constexpr int most_classes = 16;
  int blocks() const { return groups * slices; }
  // Floats of the memory the blocks exchange partial results through.
  std::size_t exchange_floats() const;
};

struct ResidentLimits {
  int blocks = 0;                // that run at once, one a multiprocessor
  std::size_t shared_bytes = 0;  // of a block
};

// The plan for a network and a batch size; groups = 0 where it does not fit on the chip.
ResidentPlan plan_resident(int inputs, int hidden, int classes, int batch, int states,
                           const ResidentLimits& limits);

// All pointers are device memory. Weights are (out, in) as in a state dict, with the optimiser's states, of
// the same layout, behind them in `first`, `second` (null where the rule keeps none).
struct ResidentWeights {
  float *value = nullptr, *first = nullptr, *second = nullptr;
};

struct ResidentRun {
  ResidentWeights weight1, bias1, weight2, bias2;
  const std::uint8_t* images = nullptr;           // rows of `inputs` bytes, 16-aligned
  const std::int32_t* labels = nullptr;           // of each position of the run
  const std::int32_t* samples = nullptr;          // which image is at each position of the run
  const UpdateNumbers<float>* numbers = nullptr;  // of each step
  std::int64_t positions = 0;
  std::int64_t steps = 0;  // of `batch` rows, the last of what is left
  float scale = 1;         // a pixel p enters as p · scale
  Activation activation = Activation::sigmoid;
  LossKind loss = LossKind::cross_entropy;
  UpdateOptions rule;
  float* exchange = nullptr;        // plan.exchange_floats()
  unsigned* counters = nullptr;     // 32 words a group and a column, all 0 before the run
  double* loss_sums = nullptr;      // one a slice: summed losses of its rows, added to
  std::int64_t* correct = nullptr;  // one a slice
};

void run_resident(const ResidentPlan& plan, const ResidentRun& run, StreamView stream);
ResidentLimits resident_limits(Device device);

}  // namespace tandem
