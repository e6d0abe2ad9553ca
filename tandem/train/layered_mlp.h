// A perceptron of any size on the GPU, layer by layer: products by cuBLAS, everything between them fused. The
// step is captured once and replayed; which samples and which rate come from memory of the device, so that no
// step waits for the host. Plain SGD only: the update is part of the product that gives the gradient,
// W ← (1 − rate · decay) · W − rate · Gᵀ · A, and the gradient itself is never stored.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/train/cpu_mlp.h"
#include "tandem/train/engine.h"

namespace tandem {

// CUDA builds only. nullptr unless the rule is SGD without momentum.
std::unique_ptr<Engine> make_layered_engine(const TrainingTask& task, const MlpShape& shape);

// Where the images of a run of steps lie. It is read from the device's memory: a captured step finds other
// images there in the next run.
struct LayeredBlock {
  const std::uint8_t* images = nullptr;
  const std::int32_t *samples = nullptr, *labels = nullptr;  // of each position of the run
};

// What the kernels of a step share.
struct LayeredStep {
  std::int64_t batch = 0;
  std::int64_t rows = 0;  // of this step's batch
  std::int64_t pixels = 0, classes = 0;
  float pixel_scale = 1;
  Activation activation = Activation::sigmoid;
  LossKind loss = LossKind::cross_entropy;
  float label_smoothing = 0;
  const LayeredBlock* block = nullptr;
  const UpdateNumbers<float>* numbers = nullptr;  // of each step of the run
  std::int64_t* cursor = nullptr;                 // the step of the run that is under way
  float* scalars = nullptr;                       // −rate, 1 − rate · decay, 1, 0: for cuBLAS
  float* row_losses = nullptr;
  std::int32_t* row_correct = nullptr;
  double* loss_sum = nullptr;
  std::int64_t* correct = nullptr;
};

void take_in_cuda(const LayeredStep& step, float* input, StreamView stream);
// values ← activation(values + bias), `width` columns.
void bias_activation_cuda(const LayeredStep& step, float* values, const float* bias, std::int64_t width,
                          StreamView stream);
// logits → the gradient of the loss with respect to them.
void output_gradient_cuda(const LayeredStep& step, float* logits, const float* bias, StreamView stream);
// gradient ← gradient · slope(activation), unless `activation` is null; then bias ← its update.
void slope_and_bias_cuda(const LayeredStep& step, float* gradient, const float* activation, float* bias,
                         std::int64_t width, StreamView stream);
// The output layer where its classes are few, together with what comes before it; width % 4 is 0.
inline constexpr int most_output_classes = 16;
struct OutputLayer {
  std::int64_t width = 0;         // of the last hidden layer
  float* hidden = nullptr;        // its sums, which become its activations
  float* hidden_bias = nullptr;   // of the last hidden layer
  const float* weight = nullptr;  // classes × width
  const float* bias = nullptr;
  float* logits = nullptr;  // rows × classes: the gradient of the loss
};
bool is_small_output(std::int64_t width, std::int64_t classes);
// hidden ← activation(hidden + hidden_bias), logits ← the gradient of the loss with respect to its sums.
void output_layer_cuda(const LayeredStep& step, const OutputLayer& layer, StreamView stream);
// gradient ← that of the hidden layer's sums; then hidden_bias ← its update.
void hidden_gradient_cuda(const LayeredStep& step, const OutputLayer& layer, float* gradient,
                          StreamView stream);
// Adds up the rows' losses and moves the cursor on.
void finish_step_cuda(const LayeredStep& step, StreamView stream);

}  // namespace tandem
