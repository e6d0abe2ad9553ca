#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tandem/device/cuda.h"
#include "tandem/device/graph.h"
#include "tandem/ops/product_type.cuh"
#include "tandem/tensor/copy.h"
#include "tandem/train/layered_mlp.h"
#include "tandem/train/mlp_engine.h"

namespace tandem {
namespace {

class LayeredEngine : public Engine {
 public:
  LayeredEngine(const TrainingTask& task, const MlpShape& shape)
      : task_(task),
        shape_(shape),
        layers_(layer_values(task)),
        stream_(task.source.device()),
        aside_(task.source.device()),
        join_(task.source.device()) {
    const Device device = task.source.device();
    const std::int64_t batch = task.batches().batch_size;
    const auto make = [&](std::int64_t count, DType dtype = DType::f32) {
      return Tensor::empty({count}, dtype, device);
    };
    most_steps_ =
        std::min<std::int64_t>(task.batches().steps(), std::max<std::int64_t>(1, most_positions / batch));
    block_ = make(sizeof(LayeredBlock), DType::u8);
    numbers_ = make(most_steps_ * update_number_count);
    cursor_ = make(1, DType::i64);
    scalars_ = make(4);
    row_losses_ = make(batch);
    row_correct_ = make(batch, DType::i32);
    loss_sum_ = make(1, DType::f64);
    correct_ = make(1, DType::i64);
    for (std::size_t i = 0; i < shape.layers(); ++i) forks_.emplace_back(device);
    for (const std::int64_t size : shape.sizes) activations_.push_back(make(batch * size));
    for (std::size_t i = 1; i + 1 < shape.sizes.size(); ++i)
      gradients_.push_back(make(batch * shape.sizes[i]));
    step_ = {.batch = batch,
             .rows = batch,
             .pixels = shape.sizes.front(),
             .classes = shape.sizes.back(),
             .pixel_scale = task.input.pixel_scale,
             .activation = shape.activation,
             .loss = shape.loss,
             .label_smoothing = static_cast<float>(task.label_smoothing),
             .block = reinterpret_cast<const LayeredBlock*>(block_.data<std::uint8_t>()),
             .numbers = reinterpret_cast<const UpdateNumbers<float>*>(numbers_.data<float>()),
             .cursor = cursor_.data<std::int64_t>(),
             .scalars = scalars_.data<float>(),
             .row_losses = row_losses_.data<float>(),
             .row_correct = row_correct_.data<std::int32_t>(),
             .loss_sum = loss_sum_.data<double>(),
             .correct = correct_.data<std::int64_t>()};
  }

  StepSums run(std::int64_t epoch, std::int64_t first, std::int64_t count) override {
    Event ready(stream_.view().device);  // after what others have done to the model
    ready.record(current_stream(stream_.view().device));
    ready.hold_back(stream_);
    const StreamScope scope(stream_);
    clear(loss_sum_);
    clear(correct_);
    StepSums sums;
    for (const std::int64_t end = first + count; first < end;) {
      const std::int64_t steps = prepare(epoch, first, std::min(end - first, most_steps_));
      for (std::int64_t step = first; step < first + steps; ++step) {
        compute(task_.batches().rows(step));
        sums.samples += task_.batches().rows(step);
      }
      first += steps;
    }
    task_.optimizer.set_step_count(task_.optimizer.step_count() + count);
    sums.loss = loss_sum_.to_vector<double>()[0];
    sums.correct = correct_.to_vector<std::int64_t>()[0];
    return sums;
  }

  void store() override {}  // it works on the model's own weights

  std::string description() const override {
    return fmt::format("perceptron layer by layer on {}, captured as a graph",
                       stream_.view().device.to_string());
  }

 private:
  static constexpr std::int64_t most_positions = 1 << 20;

  // Which images and which rates the next steps use; returns their number, at most `most`.
  std::int64_t prepare(std::int64_t epoch, std::int64_t first, std::int64_t most) {
    const std::int64_t batch = task_.batches().batch_size;
    const SourceBlock taken = task_.source.take(epoch, first * batch, most * batch);
    const std::int64_t steps = (taken.count + batch - 1) / batch;
    const LayeredBlock block{.images = taken.images, .samples = taken.samples, .labels = taken.labels};
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(&block), sizeof(block));
    copy_into(block_, Tensor::from(bytes, {sizeof(block)}, stream_.view().device));
    numbers_of_steps(task_, epoch, first, steps, step_numbers_);
    copy_into(numbers_.slice(0, 0, steps * update_number_count),
              to_device(step_numbers_, stream_.view().device));
    clear(cursor_);
    return steps;
  }

  void compute(std::int64_t rows) {
    if (rows != task_.batches().batch_size) {
      LayeredStep step = step_;
      step.rows = rows;
      return start(step);
    }
    if (!warm_) {  // cuBLAS allocates in its first calls
      warm_ = true;
      return start(step_);
    }
    if (!graph_.captured()) graph_.capture(stream_, [this] { start(step_); });
    graph_.replay(stream_);
  }

  void start(const LayeredStep& step) {
    const std::size_t last = layers_.size() - 1;
    const auto activation = [&](std::size_t i) { return activations_[i].data<float>(); };
    const auto gradient =
        [&](std::size_t layer) {  // of the layer's sums; the last one's stands on its logits
          return layer == last ? activation(last + 1) : gradients_[layer].data<float>();
        };
    const bool small_output = last > 0 && is_small_output(shape_.sizes[last], shape_.sizes[last + 1]);
    const OutputLayer output{.width = shape_.sizes[last],
                             .hidden = activation(last),
                             .hidden_bias = last > 0 ? layers_[last - 1].bias.value : nullptr,
                             .weight = layers_[last].weight.value,
                             .bias = layers_[last].bias.value,
                             .logits = activation(last + 1)};
    take_in_cuda(step, activation(0), stream_);
    for (std::size_t i = 0; i <= last; ++i) {
      if (i == last && small_output) break;
      const std::int64_t in = shape_.sizes[i], out = shape_.sizes[i + 1];
      // Z (rows × out) = A · Wᵀ
      product(main, CUBLAS_OP_T, CUBLAS_OP_N, out, step.rows, in, 2, layers_[i].weight.value, in,
              activation(i), in, 3, activation(i + 1), out);
      if (i < last && !(small_output && i + 1 == last))
        bias_activation_cuda(step, activation(i + 1), layers_[i].bias.value, out, stream_);
    }
    if (small_output)
      output_layer_cuda(step, output, stream_);
    else
      output_gradient_cuda(step, activation(last + 1), layers_[last].bias.value, stream_);
    // The chain of gradients goes down the main stream; weights are updated aside as soon as nothing down the
    // chain needs them any more, which fills the gaps that single products leave on the chip. The first
    // layer's ends the chain, so it stays on the main stream, beside what is left to do aside.
    for (std::size_t i = last + 1; i-- > 0;) {
      const std::int64_t in = shape_.sizes[i], out = shape_.sizes[i + 1];
      const bool through_output = small_output && i == last;
      if (through_output)
        hidden_gradient_cuda(step, output, gradient(last - 1), stream_);
      else if (i > 0)  // G · W: the gradient before this layer
        product(main, CUBLAS_OP_N, CUBLAS_OP_N, in, step.rows, out, 2, layers_[i].weight.value, in,
                gradient(i), out, 3, gradient(i - 1), in);
      const Lane lane = i == 0 ? main : aside;
      if (lane == aside) {
        forks_[i].record(stream_);
        forks_[i].hold_back(aside_);
      }
      if (i == last)
        slope_and_bias_cuda(step, gradient(last), nullptr, layers_[last].bias.value, out,
                            lane == main ? stream_ : aside_);
      // W (out × in) ← shrink · W − rate · Gᵀ · A
      product(lane, CUBLAS_OP_N, CUBLAS_OP_T, in, out, step.rows, 0, activation(i), in, gradient(i), out, 1,
              layers_[i].weight.value, in);
      if (i > 0 && !through_output)
        slope_and_bias_cuda(step, gradient(i - 1), activation(i), layers_[i - 1].bias.value, in, stream_);
    }
    if (last > 0) {
      join_.record(aside_);
      join_.hold_back(stream_);
    }
    finish_step_cuda(step, stream_);
  }

  // C = alpha · op(A) · op(B) + beta · C in cuBLAS's terms, which thinks in columns: a row-major matrix is
  // its transpose there. alpha and beta are numbers of scalars_.
  enum Lane { main, aside };
  void product(Lane lane, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
               std::int64_t k, int alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
               int beta, float* c, std::int64_t ldc) {
    const cublasHandle_t handle = cublas_handle(lane == main ? stream_ : aside_, lane);
    cublas_check(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
    const cublasStatus_t status =
        cublasGemmEx(handle, op_a, op_b, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
                     step_.scalars + alpha, a, CUDA_R_32F, static_cast<int>(lda), b, CUDA_R_32F,
                     static_cast<int>(ldb), step_.scalars + beta, c, CUDA_R_32F, static_cast<int>(ldc),
                     product_type(task_.precision), CUBLAS_GEMM_DEFAULT);
    cublas_check(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
    cublas_check(status, "cublasGemmEx");
  }

  TrainingTask task_;
  MlpShape shape_;
  std::vector<LayerValues> layers_;
  std::int64_t most_steps_ = 0;
  Tensor block_, numbers_, cursor_, scalars_, row_losses_, row_correct_, loss_sum_, correct_;
  std::vector<Tensor> activations_;  // the input first, the logits last
  std::vector<Tensor> gradients_;    // of the hidden layers' sums
  std::vector<UpdateNumbers<float>> step_numbers_;
  LayeredStep step_;
  Stream stream_, aside_;
  std::vector<Event> forks_;  // one a layer
  Event join_;
  Graph graph_;
  bool warm_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_layered_engine(const TrainingTask& task, const MlpShape& shape) {
  const UpdateOptions& rule = task.optimizer.options();
  constexpr std::int64_t most = 1 << 20;
  const bool small_sizes =
      std::all_of(shape.sizes.begin(), shape.sizes.end(), [](std::int64_t size) { return size <= most; });
  if (rule.kind != OptimizerKind::sgd || rule.momentum != 0 || !small_sizes) return nullptr;
  return std::make_unique<LayeredEngine>(task, shape);
}

}  // namespace tandem
