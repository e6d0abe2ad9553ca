#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <span>

#include "tandem/device/cuda.h"
#include "tandem/device/graph.h"
#include "tandem/ops/cublas_compute_type.cuh"
#include "tandem/ops/fill.h"
#include "tandem/optim/fused_update.h"
#include "tandem/tensor/copy.h"
#include "tandem/train/engines/layered_mlp.h"
#include "tandem/train/engines/layered_mlp_kernel.h"
#include "tandem/train/engines/mlp_engine.h"

namespace tandem {
namespace {

// T: of activations, gradients and factors of products. With BFloat16 the products read rounded copies of the
// weights, which stay f32; the output layer must be small.
template <class T>
class LayeredEngine : public Engine {
 public:
  LayeredEngine(const TrainingTask& task, const MlpTask& mlp)
      : task_(task),
        shape_(mlp.shape),
        layers_(mlp.layers),
        stream_(task.source.device()),
        side_stream_(task.source.device()),
        join_(task.source.device()) {
    const Device device = task.source.device();
    const MlpShape& shape = mlp.shape;
    const std::int64_t batch = task.batches().batch_size;
    const auto make = [&](std::int64_t count, DType dtype = DType::f32) {
      return Tensor::empty({count}, dtype, device);
    };
    max_steps_ =
        std::min<std::int64_t>(task.batches().steps(), std::max<std::int64_t>(1, max_positions / batch));
    block_ = make(sizeof(detail::LayeredBlock), DType::u8);
    hyperparameters_ = make(max_steps_ * detail::step_hyperparameter_count);
    cursor_ = make(1, DType::i64);
    scalars_ = make(4);
    row_losses_ = make(batch);
    row_correct_ = make(batch, DType::i32);
    loss_sum_ = make(1, DType::f64);
    correct_ = make(1, DType::i64);
    for (std::size_t i = 0; i < shape.layers(); ++i) forks_.emplace_back(device);
    for (std::size_t i = 0; i < shape.layers(); ++i)
      activations_.push_back(make(batch * shape.sizes[i], value_type));
    logits_ = make(batch * shape.sizes.back());
    for (std::size_t i = 1; i < shape.layers(); ++i)
      gradients_.push_back(make(batch * shape.sizes[i], value_type));
    if constexpr (is_rounded) {
      expect(has_small_output());
      gradients_.push_back(make(batch * shape.sizes.back(), value_type));
      for (std::size_t i = 0; i + 1 < shape.layers(); ++i)
        rounded_.push_back(make(shape.sizes[i] * shape.sizes[i + 1], value_type));
    }
    step_ = {.batch = batch,
             .rows = batch,
             .pixels = shape.sizes.front(),
             .classes = shape.sizes.back(),
             .pixel_scale = mlp.pixel_scale,
             .activation = shape.activation,
             .loss = shape.loss,
             .label_smoothing = static_cast<float>(task.label_smoothing),
             .block = reinterpret_cast<const detail::LayeredBlock*>(block_.data<std::uint8_t>()),
             .hyperparameters =
                 reinterpret_cast<const detail::StepHyperparameters<float>*>(hyperparameters_.data<float>()),
             .cursor = cursor_.data<std::int64_t>(),
             .scalars = scalars_.data<float>(),
             .row_losses = row_losses_.data<float>(),
             .row_correct = row_correct_.data<std::int32_t>(),
             .loss_sum = loss_sum_.data<double>(),
             .correct = correct_.data<std::int64_t>()};
  }

  void add_steps(std::int64_t epoch, std::int64_t first, std::int64_t count, StepSums& sums) override {
    Event ready(stream_.view().device);  // wait for pending work on the model
    ready.record(current_stream(stream_.view().device));
    ready.block_stream(stream_);
    const StreamScope scope(stream_);
    copy_into(loss_sum_, full(loss_sum_.shape(), sums.loss, DType::f64, loss_sum_.device()));
    clear(correct_);
    for (std::size_t i = 0; i < rounded_.size(); ++i) round_weights(i, stream_);
    for (const std::int64_t end = first + count; first < end;) {
      const std::int64_t steps = prepare(epoch, first, std::min(end - first, max_steps_));
      for (std::int64_t step = first; step < first + steps; ++step) {
        compute(task_.batches().rows(step));
        sums.samples += task_.batches().rows(step);
      }
      first += steps;
    }
    task_.optimizer.set_step_count(task_.optimizer.step_count() + count);
    sums.loss = loss_sum_.to_vector<double>()[0];
    sums.correct += correct_.to_vector<std::int64_t>()[0];
  }

  void store() override {}  // trains the model's own weights

  std::string description() const override {
    return fmt::format("perceptron layer by layer on {}, captured as a graph{}",
                       stream_.view().device.to_string(), is_rounded ? ", activations in bf16" : "");
  }

 private:
  static constexpr std::int64_t max_positions = 1 << 20;
  static constexpr bool is_rounded = !std::same_as<T, float>;
  static constexpr DType value_type = dtype_of<T>;

  // Uploads the images and hyperparameters of the next steps. Returns the number of steps, at most
  // `max_count`.
  std::int64_t prepare(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
    const std::int64_t batch = task_.batches().batch_size;
    const SourceBlock taken = task_.source.next_block(epoch, first * batch, max_count * batch);
    const std::int64_t steps = (taken.count + batch - 1) / batch;
    const detail::LayeredBlock block{
        .images = taken.images, .samples = taken.samples, .labels = taken.labels};
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(&block), sizeof(block));
    copy_into(block_, Tensor::from(bytes, {sizeof(block)}, stream_.view().device));
    fill_step_hyperparameters(task_, epoch, first, steps, host_hyperparameters_);
    copy_into(hyperparameters_.slice(0, 0, steps * detail::step_hyperparameter_count),
              to_device(host_hyperparameters_, stream_.view().device));
    clear(cursor_);
    return steps;
  }

  void compute(std::int64_t rows) {
    if (rows != task_.batches().batch_size) {
      detail::LayeredStep step = step_;
      step.rows = rows;
      return start(step);
    }
    if (!warmed_up_) {  // cuBLAS allocates memory in its first calls, which cannot be captured
      warmed_up_ = true;
      return start(step_);
    }
    if (!graph_.captured()) graph_.capture(stream_, [this] { start(step_); });
    graph_.replay(stream_);
  }

  void start(const detail::LayeredStep& step) {
    forward(step);
    backward(step);
    detail::finish_step_cuda(step, stream_);
  }

  // The input, and those of hidden layers.
  T* activation(std::size_t i) const { return activations_[i].template data<T>(); }
  // Replaced by the gradient with respect to them.
  float* logits() const { return logits_.template data<float>(); }
  // Of the pre-activations.
  T* gradient(std::size_t layer) const {
    if constexpr (!is_rounded)
      if (layer + 1 == layers_.size()) return logits();
    return gradients_[layer].template data<T>();
  }
  // The weights of a layer as a factor of products.
  const T* factor(std::size_t layer) const {
    if constexpr (is_rounded)
      return rounded_[layer].template data<T>();
    else
      return layers_[layer].weight.value;
  }
  void round_weights(std::size_t layer, StreamView stream) {
    if constexpr (is_rounded)
      detail::round_weights_cuda(layers_[layer].weight.value, rounded_[layer].template data<T>(),
                                 rounded_[layer].numel(), stream);
  }
  bool has_small_output() const {
    const std::size_t last = layers_.size() - 1;
    return last > 0 && detail::is_small_output(shape_.sizes[last], shape_.sizes[last + 1]);
  }
  detail::OutputLayer<T> output_layer() const {
    const std::size_t last = layers_.size() - 1;
    return {.width = shape_.sizes[last],
            .hidden = activation(last),
            .hidden_bias = last > 0 ? layers_[last - 1].bias.value : nullptr,
            .weight = layers_[last].weight.value,
            .bias = layers_[last].bias.value,
            .logits = logits(),
            .logit_gradient = is_rounded ? gradient(last) : nullptr};
  }

  void forward(const detail::LayeredStep& step) {
    const std::size_t last = layers_.size() - 1;
    const bool small_output = has_small_output();
    detail::load_batch_cuda(step, activation(0), stream_);
    for (std::size_t i = 0; i <= last; ++i) {
      if (i == last && small_output) break;
      const std::int64_t in = shape_.sizes[i], out = shape_.sizes[i + 1];
      // Z (rows × out) = A · Wᵀ
      multiply(main, {.op_a = CUBLAS_OP_T,
                      .op_b = CUBLAS_OP_N,
                      .m = out,
                      .n = step.rows,
                      .k = in,
                      .a = factor(i),
                      .lda = in,
                      .b = activation(i),
                      .ldb = in,
                      .c = i == last ? static_cast<void*>(logits()) : activation(i + 1),
                      .c_type = i == last ? CUDA_R_32F : data_type,
                      .ldc = out});
      if (i < last && !(small_output && i + 1 == last))
        detail::bias_activation_cuda(step, activation(i + 1), layers_[i].bias.value, out, stream_);
    }
    if (small_output)
      detail::output_layer_cuda(step, output_layer(), stream_);
    else
      detail::output_gradient_cuda(step, logits(), layers_[last].bias.value, stream_);
  }

  // The chain of gradients runs on the main stream. A layer's weights are updated on the side stream as soon
  // as the chain no longer reads them, which uses multiprocessors that a single product leaves idle. The
  // first layer's update ends the chain, so it stays on the main stream, in parallel with the remaining
  // updates.
  void backward(const detail::LayeredStep& step) {
    const std::size_t last = layers_.size() - 1;
    const bool small_output = has_small_output();
    for (std::size_t i = last + 1; i-- > 0;) {
      const std::int64_t in = shape_.sizes[i], out = shape_.sizes[i + 1];
      const bool through_output = small_output && i == last;
      if (through_output)
        detail::hidden_gradient_cuda(step, output_layer(), gradient(last - 1), stream_);
      else if (i > 0)  // G · W: the gradient before this layer
        multiply(main, {.op_a = CUBLAS_OP_N,
                        .op_b = CUBLAS_OP_N,
                        .m = in,
                        .n = step.rows,
                        .k = out,
                        .a = factor(i),
                        .lda = in,
                        .b = gradient(i),
                        .ldb = out,
                        .c = gradient(i - 1),
                        .c_type = data_type,
                        .ldc = in});
      const Lane lane = i == 0 ? main : side;
      if (lane == side) {
        forks_[i].record(stream_);
        forks_[i].block_stream(side_stream_);
      }
      if (i == last)
        detail::activation_gradient_cuda<float>(step, logits(), nullptr, layers_[last].bias.value, out,
                                                lane == main ? stream_ : side_stream_);
      // W (out × in) ← shrink · W − rate · Gᵀ · A
      multiply(lane, {.op_a = CUBLAS_OP_N,
                      .op_b = CUBLAS_OP_T,
                      .m = in,
                      .n = out,
                      .k = step.rows,
                      .alpha = StepScalar::minus_rate,
                      .a = activation(i),
                      .lda = in,
                      .b = gradient(i),
                      .ldb = out,
                      .beta = StepScalar::shrink,
                      .c = layers_[i].weight.value,
                      .c_type = CUDA_R_32F,
                      .ldc = in});
      if (i < rounded_.size()) round_weights(i, lane == main ? stream_ : side_stream_);
      if (i > 0 && !through_output)
        detail::activation_gradient_cuda(step, gradient(i - 1), activation(i), layers_[i - 1].bias.value, in,
                                         stream_);
    }
    if (last > 0) {
      join_.record(side_stream_);
      join_.block_stream(stream_);
    }
  }

  using StepScalar = detail::StepScalar;
  // C = alpha · op(A) · op(B) + beta · C for cuBLAS, which is column-major: a row-major matrix is its
  // transpose there.
  struct Product {
    cublasOperation_t op_a = CUBLAS_OP_N;
    cublasOperation_t op_b = CUBLAS_OP_N;
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    StepScalar alpha = StepScalar::one;
    const T* a = nullptr;
    std::int64_t lda = 0;
    const T* b = nullptr;
    std::int64_t ldb = 0;
    StepScalar beta = StepScalar::zero;
    void* c = nullptr;
    cudaDataType_t c_type = CUDA_R_32F;
    std::int64_t ldc = 0;
  };
  static constexpr cudaDataType_t data_type = is_rounded ? CUDA_R_16BF : CUDA_R_32F;
  enum Lane { main, side };
  void multiply(Lane lane, const Product& p) {
    const auto scalar = [&](StepScalar which) { return step_.scalars + static_cast<int>(which); };
    const cublasHandle_t handle = cublas_handle(lane == main ? stream_ : side_stream_, lane);
    cublas_check(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
    const cublasStatus_t status = cublasGemmEx(
        handle, p.op_a, p.op_b, static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k),
        scalar(p.alpha), p.a, data_type, static_cast<int>(p.lda), p.b, data_type, static_cast<int>(p.ldb),
        scalar(p.beta), p.c, p.c_type, static_cast<int>(p.ldc),
        is_rounded ? CUBLAS_COMPUTE_32F : detail::cublas_compute_type(task_.precision), CUBLAS_GEMM_DEFAULT);
    cublas_check(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
    cublas_check(status, "cublasGemmEx");
  }

  TrainingTask task_;
  MlpShape shape_;
  std::vector<LayerState> layers_;
  std::int64_t max_steps_ = 0;
  Tensor block_, hyperparameters_, cursor_, scalars_, row_losses_, row_correct_, loss_sum_, correct_;
  std::vector<Tensor> activations_;  // the input first
  Tensor logits_;                    // f32
  std::vector<Tensor> gradients_;    // of the hidden layers' pre-activations; rounded also of the logits
  std::vector<Tensor> rounded_;      // weights of the hidden layers
  std::vector<detail::StepHyperparameters<float>> host_hyperparameters_;
  detail::LayeredStep step_;
  Stream stream_, side_stream_;
  std::vector<Event> forks_;  // one per layer
  Event join_;
  Graph graph_;
  bool warmed_up_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_layered_engine(const TrainingTask& task, const MlpTask& mlp) {
  const OptimizerOptions& optimizer = mlp.optimizer->options();
  constexpr std::int64_t max_size = 1 << 20;
  const bool small_sizes =
      std::ranges::all_of(mlp.shape.sizes, [](std::int64_t size) { return size <= max_size; });
  if (optimizer.kind != OptimizerKind::sgd || optimizer.momentum != 0 || !small_sizes) return nullptr;
  const auto is_packed = [](std::int64_t size) { return size % 8 == 0; };
  const std::size_t last = mlp.shape.layers() - 1;
  if (task.precision == MatmulPrecision::bf16 && last > 0 &&
      detail::is_small_output(mlp.shape.sizes[last], mlp.shape.sizes[last + 1]) &&
      std::all_of(mlp.shape.sizes.begin(), mlp.shape.sizes.end() - 1, is_packed))
    return std::make_unique<LayeredEngine<BFloat16>>(task, mlp);
  return std::make_unique<LayeredEngine<float>>(task, mlp);
}

}  // namespace tandem
