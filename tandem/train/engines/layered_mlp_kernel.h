// The kernels of LayeredEngine: everything of a training step between the matrix products of cuBLAS.
#pragma once

#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/device/stream.h"
#include "tandem/optim/update_rule.h"
#include "tandem/train/engines/mlp_shape.h"

namespace tandem::detail {

// The images of a run of steps. Kernels read it from device memory, so that a captured step can process other
// images in the next run.
struct LayeredBlock {
  const std::uint8_t* images = nullptr;
  const std::int32_t* samples = nullptr;  // index of the image at each position of the run
  const std::int32_t* labels = nullptr;   // of each position of the run
};

// The values in LayeredStep::scalars, which cuBLAS reads as alpha and beta.
enum class StepScalar : int { minus_rate, shrink, one, zero };

// Arguments that all kernels of a step share.
struct LayeredStep {
  std::int64_t batch = 0;
  std::int64_t rows = 0;  // of this step's batch
  std::int64_t pixels = 0;
  std::int64_t classes = 0;
  float pixel_scale = 1;
  MlpActivation activation = MlpActivation::sigmoid;
  LossKind loss = LossKind::cross_entropy;
  float label_smoothing = 0;
  const LayeredBlock* block = nullptr;
  const StepHyperparameters<float>* hyperparameters = nullptr;  // of each step of the run
  std::int64_t* cursor = nullptr;                               // index of the current step in the run
  float* scalars = nullptr;  // by StepScalar: −rate, 1 − rate · decay, 1, 0
  float* row_losses = nullptr;
  std::int32_t* row_correct = nullptr;
  double* loss_sum = nullptr;
  std::int64_t* correct = nullptr;
};

// Activations and gradients are values of type T, float or BFloat16; all sums are of floats.

// Gathers the step's images as rows of values and sets `scalars`.
template <class T>
void load_batch_cuda(const LayeredStep& step, T* input, StreamView stream);
// values ← activation(values + bias), `width` columns; a multiple of 8 for BFloat16.
template <class T>
void bias_activation_cuda(const LayeredStep& step, T* values, const float* bias, std::int64_t width,
                          StreamView stream);
// logits → the gradient of the loss with respect to them.
void output_gradient_cuda(const LayeredStep& step, float* logits, const float* bias, StreamView stream);
// gradient ← gradient · slope(activation), unless `activation` is null; then updates the bias.
template <class T>
void activation_gradient_cuda(const LayeredStep& step, T* gradient, const T* activation, float* bias,
                              std::int64_t width, StreamView stream);

// The output layer, if it is small enough to be fused with the activation before it.
inline constexpr int max_output_classes = 16;
template <class T>
struct OutputLayer {
  std::int64_t width = 0;         // of the last hidden layer, a multiple of 4
  T* hidden = nullptr;            // pre-activations, replaced by activations
  float* hidden_bias = nullptr;   // of the last hidden layer
  const float* weight = nullptr;  // classes × width
  const float* bias = nullptr;
  float* logits = nullptr;      // rows × classes, replaced by the gradient of the loss
  T* logit_gradient = nullptr;  // the same as values, if it is not null
};
bool is_small_output(std::int64_t width, std::int64_t classes);
// hidden ← activation(hidden + hidden_bias), logits ← the gradient of the loss with respect to them.
template <class T>
void output_layer_cuda(const LayeredStep& step, const OutputLayer<T>& layer, StreamView stream);
// gradient ← that of the hidden layer's pre-activations; then updates hidden_bias.
template <class T>
void hidden_gradient_cuda(const LayeredStep& step, const OutputLayer<T>& layer, T* gradient,
                          StreamView stream);
// Rounds weights, a multiple of 8 in number.
void round_weights_cuda(const float* weights, BFloat16* rounded, std::int64_t count, StreamView stream);
// Adds the rows' losses to the sums and advances the cursor.
void finish_step_cuda(const LayeredStep& step, StreamView stream);

}  // namespace tandem::detail
