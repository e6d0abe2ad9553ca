#include <concepts>

#include "tandem/core/convert.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/pack.cuh"
#include "tandem/train/engines/layered_mlp_kernel.h"
#include "tandem/train/engines/mlp_math.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void load_batch(const LayeredStep step, T* input) {
  const std::int64_t now = *step.cursor, row = blockIdx.x;
  const LayeredBlock block = *step.block;
  const std::uint8_t* const image = block.images + block.samples[now * step.batch + row] * step.pixels;
  for (std::int64_t i = threadIdx.x; i < step.pixels; i += threads)
    input[row * step.pixels + i] = convert<T>(static_cast<float>(image[i]) * step.pixel_scale);
  if (row != 0 || threadIdx.x != 0) return;
  const StepHyperparameters<float> hyperparameters = step.hyperparameters[now];
  const auto set = [&](StepScalar which, float value) { step.scalars[static_cast<int>(which)] = value; };
  set(StepScalar::minus_rate, -hyperparameters.rate);
  set(StepScalar::shrink, 1 - hyperparameters.rate * hyperparameters.decay);
  set(StepScalar::one, 1);
  set(StepScalar::zero, 0);
}

__global__ void bias_activation(MlpActivation activation, float* values, const float* bias,
                                std::int64_t width, std::int64_t count) {
  for (std::int64_t i = blockIdx.x * std::int64_t{threads} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads)
    values[i] = activated(activation, values[i] + bias[i % width]);
}

// The same for widths that are multiples of a pack of 16 bytes: one block per row, a pack at a time per
// thread.
template <class T>
constexpr int pack_width = 16 / static_cast<int>(sizeof(T));

template <class T>
__global__ void bias_activation_packs(MlpActivation activation, T* values, const float* bias, int packs) {
  constexpr int width = pack_width<T>;
  T* const row = values + std::int64_t{blockIdx.x} * packs * width;
  for (int i = threadIdx.x; i < packs; i += threads) {
    auto z = load_pack<width>(row + i * width);
    float b[width];
#pragma unroll
    for (int j = 0; j < width; j += 4) {
      const auto four = load_pack<4>(bias + i * width + j);
      for (int k = 0; k < 4; ++k) b[j + k] = four.value[k];
    }
#pragma unroll
    for (int j = 0; j < width; ++j)
      z.value[j] = convert<T>(activated(activation, convert<float>(z.value[j]) + b[j]));
    store_pack(row + i * width, z);
  }
}

__global__ void round_weights(const float* weights, BFloat16* rounded, std::int64_t packs) {
  for (std::int64_t i = blockIdx.x * std::int64_t{threads} + threadIdx.x; i < packs;
       i += std::int64_t{gridDim.x} * threads) {
    const auto low = load_pack<4>(weights + i * 8), high = load_pack<4>(weights + i * 8 + 4);
    Pack<BFloat16, 8> result;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      result.value[j] = convert<BFloat16>(low.value[j]);
      result.value[4 + j] = convert<BFloat16>(high.value[j]);
    }
    store_pack(rounded + i * 8, result);
  }
}

template <class F>
__device__ float warp_reduce(float value, F&& f) {
  for (int bit = 16; bit > 0; bit /= 2) value = f(value, __shfl_xor_sync(0xffffffffu, value, bit));
  return value;
}
__device__ float warp_sum(float value) {
  return warp_reduce(value, [](float a, float b) { return a + b; });
}

// Turns one row's logits z, still without bias, into the gradient of the loss with respect to them. Called by
// a whole warp.
__device__ void row_gradient(const LayeredStep& step, std::int64_t row, float* z, const float* bias) {
  const int lane = threadIdx.x % 32, classes = static_cast<int>(step.classes);
  const int label = step.block->labels[*step.cursor * step.batch + row];
  const auto rows = static_cast<float>(step.rows);
  const float infinity = __int_as_float(0x7f800000);
  float max_logit = -infinity;
  for (int c = lane; c < classes; c += 32) max_logit = fmaxf(max_logit, z[c] += bias[c]);
  max_logit = warp_reduce(max_logit, [](float a, float b) { return fmaxf(a, b); });
  __syncwarp();
  const float label_logit = z[label];
  __syncwarp();
  float loss = 0;
  if (step.loss == LossKind::cross_entropy) {
    float sum = 0, shifted = 0;
    for (int c = lane; c < classes; c += 32) {
      sum += expf(z[c] - max_logit);
      shifted += z[c] - max_logit;
    }
    sum = warp_sum(sum);
    shifted = warp_sum(shifted);
    const float own = 1 - step.label_smoothing, uniform = step.label_smoothing / static_cast<float>(classes);
    loss = logf(sum) - own * (label_logit - max_logit) - uniform * shifted;
    for (int c = lane; c < classes; c += 32)
      z[c] = (expf(z[c] - max_logit) / sum - uniform - (c == label ? own : 0)) / rows;
  } else {
    const float scale = 2 / (rows * static_cast<float>(classes));
    for (int c = lane; c < classes; c += 32) {
      const float y = 1 / (1 + expf(-z[c])), difference = y - (c == label ? 1.0f : 0.0f);
      loss += difference * difference;
      z[c] = scale * difference * y * (1 - y);
    }
    loss = warp_sum(loss) / static_cast<float>(classes);
  }
  if (lane == 0) {
    step.row_losses[row] = loss;
    step.row_correct[row] = label_logit == max_logit;
  }
}

// One warp per row.
__global__ void output_gradient(const LayeredStep step, float* logits, const float* bias) {
  const std::int64_t row = blockIdx.x * std::int64_t{threads / 32} + threadIdx.x / 32;
  if (row < step.rows) row_gradient(step, row, logits + row * step.classes, bias);
}

__device__ float dot(float4 a, float4 b) {
  return (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
}

template <class T>
__device__ float4 load4(const T* from) {
  const auto four = load_pack<4>(from);
  return make_float4(convert<float>(four.value[0]), convert<float>(four.value[1]),
                     convert<float>(four.value[2]), convert<float>(four.value[3]));
}

// Stores four values and returns them as they were stored.
template <class T>
__device__ float4 store4(T* to, float4 from) {
  const Pack<T, 4> four{convert<T>(from.x), convert<T>(from.y), convert<T>(from.z), convert<T>(from.w)};
  store_pack(to, four);
  return make_float4(convert<float>(four.value[0]), convert<float>(four.value[1]),
                     convert<float>(four.value[2]), convert<float>(four.value[3]));
}

// The last hidden layer's activation, the logits and their gradient, in one pass over the hidden values. A
// block computes `block_rows` rows; its threads divide the width and then add their partial sums.
// `max_classes` is at least the number of classes.
template <int block_rows, int max_classes, class T>
__global__ void __launch_bounds__(threads, 1)
    output_layer(const LayeredStep step, const OutputLayer<T> layer) {
  __shared__ float sums[threads / 32][block_rows][max_classes];
  const std::int64_t first = blockIdx.x * std::int64_t{block_rows};
  const int classes = static_cast<int>(step.classes), quads = static_cast<int>(layer.width / 4);
  const int rows = static_cast<int>(step.rows - first < block_rows ? step.rows - first : block_rows);
  T* const hidden = layer.hidden + first * layer.width;
  const auto* const weight = reinterpret_cast<const float4*>(layer.weight);
  float sum[block_rows][max_classes] = {};
  for (int q = threadIdx.x; q < quads; q += threads) {
    const float4 b = reinterpret_cast<const float4*>(layer.hidden_bias)[q];
    float4 z[block_rows], w[max_classes];
#pragma unroll
    for (int r = 0; r < block_rows; ++r) z[r] = r < rows ? load4(hidden + (r * quads + q) * 4) : float4{};
#pragma unroll
    for (int c = 0; c < max_classes; ++c) w[c] = c < classes ? weight[c * quads + q] : float4{};
#pragma unroll
    for (int r = 0; r < block_rows; ++r) {
      float4 a =
          make_float4(activated(step.activation, z[r].x + b.x), activated(step.activation, z[r].y + b.y),
                      activated(step.activation, z[r].z + b.z), activated(step.activation, z[r].w + b.w));
      if (r < rows) a = store4(hidden + (r * quads + q) * 4, a);
#pragma unroll
      for (int c = 0; c < max_classes; ++c) sum[r][c] += dot(a, w[c]);
    }
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < block_rows; ++r)
#pragma unroll
    for (int c = 0; c < max_classes; ++c) {
      const float all = warp_sum(sum[r][c]);
      if (lane == 0) sums[warp][r][c] = all;
    }
  __syncthreads();
  if (warp >= rows) return;
  float* const logits = layer.logits + (first + warp) * classes;
  if (lane < classes) {
    float all = 0;
    for (int w = 0; w < threads / 32; ++w) all += sums[w][warp][lane];
    logits[lane] = all;
  }
  __syncwarp();
  row_gradient(step, first + warp, logits, layer.bias);
  if (layer.logit_gradient && lane < classes)
    layer.logit_gradient[(first + warp) * classes + lane] = convert<T>(logits[lane]);
}

// `vec` adjacent values, loaded and stored at once.
template <class T, int vec>
struct alignas(sizeof(T) * vec) Values {
  T at[vec];
};

// 32 columns per block, vec of them per thread. The rows are divided into strands, whose sums are added in a
// fixed order.
constexpr int column_threads = 1024;
template <int vec>
constexpr int strands = column_threads* vec / 32;

template <int vec>
__device__ void update_bias(const LayeredStep& step, const Values<float, vec>& sum, float* bias,
                            std::int64_t width) {
  __shared__ float sums[strands<vec>][33];
  for (int v = 0; v < vec; ++v) sums[threadIdx.y][threadIdx.x * vec + v] = sum.at[v];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const std::int64_t column = blockIdx.x * std::int64_t{32} + thread;
  if (thread >= 32 || column >= width) return;
  float all = 0;
#pragma unroll 8
  for (int strand = 0; strand < strands<vec>; ++strand) all += sums[strand][thread];
  const StepHyperparameters<float> hyperparameters = step.hyperparameters[*step.cursor];
  float unused = 0;
  SgdRule{}(bias[column], all, unused, unused, hyperparameters);
}

template <int vec, class T>
__global__ void __launch_bounds__(column_threads)
    activation_gradient(const LayeredStep step, T* gradient, const T* activation, float* bias,
                        std::int64_t width) {
  const std::int64_t column = blockIdx.x * std::int64_t{32} + threadIdx.x * vec;
  Values<float, vec> sum{};
  if (column < width) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.y; row < step.rows; row += strands<vec>) {
      auto* const address = reinterpret_cast<Values<T, vec>*>(gradient + row * width + column);
      Values<T, vec> g = *address;
      if (activation) {
        const auto a = *reinterpret_cast<const Values<T, vec>*>(activation + row * width + column);
        for (int v = 0; v < vec; ++v)
          g.at[v] = convert<T>(convert<float>(g.at[v]) *
                               activation_slope(step.activation, convert<float>(a.at[v])));
        *address = g;
      }
      for (int v = 0; v < vec; ++v) sum.at[v] += convert<float>(g.at[v]);
    }
  }
  update_bias<vec>(step, sum, bias, width);
}

// The same for the last hidden layer below a small output layer: also computes the gradient from that of the
// logits, which is staged in shared memory, where all threads of a warp read the same value.
template <int max_classes, class T>
__global__ void __launch_bounds__(column_threads)
    hidden_gradient(const LayeredStep step, const OutputLayer<T> layer, T* gradient) {
  constexpr int vec = 2, quads = (max_classes + 3) / 4, staged_rows = 512;
  __shared__ float4 staged[staged_rows * quads];
  const std::int64_t column = blockIdx.x * std::int64_t{32} + threadIdx.x * vec;
  const int classes = static_cast<int>(step.classes), rows = static_cast<int>(step.rows);
  float4 w[vec][quads];
#pragma unroll
  for (int v = 0; v < vec; ++v)
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const auto weight = [&](int c) {
        return c < classes && column < layer.width ? layer.weight[c * layer.width + column + v] : 0.0f;
      };
      w[v][q] = make_float4(weight(4 * q), weight(4 * q + 1), weight(4 * q + 2), weight(4 * q + 3));
    }
  Values<float, vec> sum{};
  for (int first = 0; first < rows; first += staged_rows) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < staged_rows * quads * 4;
         i += column_threads) {
      const int row = first + i / (quads * 4), c = i % (quads * 4);
      reinterpret_cast<float*>(staged)[i] =
          row < rows && c < classes ? layer.logits[std::int64_t{row} * classes + c] : 0;
    }
    __syncthreads();
    const int valid_rows = rows - first < staged_rows ? rows - first : staged_rows;
    if (column >= layer.width) continue;
#pragma unroll 4
    for (int row = threadIdx.y; row < valid_rows; row += strands<vec>) {
      const std::int64_t at = (first + row) * layer.width + column;
      const auto a = *reinterpret_cast<const Values<T, vec>*>(layer.hidden + at);
      Values<float, vec> g{};
      Values<T, vec> stored;
#pragma unroll
      for (int q = 0; q < quads; ++q) {
        const float4 above = staged[row * quads + q];
        for (int v = 0; v < vec; ++v) g.at[v] += dot(above, w[v][q]);
      }
      for (int v = 0; v < vec; ++v) {
        stored.at[v] = convert<T>(g.at[v] * activation_slope(step.activation, convert<float>(a.at[v])));
        sum.at[v] += convert<float>(stored.at[v]);
      }
      *reinterpret_cast<Values<T, vec>*>(gradient + at) = stored;
    }
  }
  update_bias<vec>(step, sum, layer.hidden_bias, layer.width);
}

__global__ void finish_step(const LayeredStep step) {
  __shared__ double losses[threads];
  __shared__ int correct_counts[threads];
  double loss = 0;
  int correct = 0;
  for (std::int64_t row = threadIdx.x; row < step.rows; row += threads) {
    loss += step.row_losses[row];
    correct += step.row_correct[row];
  }
  losses[threadIdx.x] = loss;
  correct_counts[threadIdx.x] = correct;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    losses[threadIdx.x] += losses[threadIdx.x + half];
    correct_counts[threadIdx.x] += correct_counts[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  *step.loss_sum += losses[0];
  *step.correct += correct_counts[0];
  ++*step.cursor;
}

}  // namespace

template <class T>
void load_batch_cuda(const LayeredStep& step, T* input, StreamView stream) {
  load_batch<<<static_cast<unsigned>(step.rows), threads, 0, cuda_stream(stream)>>>(step, input);
  check_launch("load_batch");
}

template <class T>
void bias_activation_cuda(const LayeredStep& step, T* values, const float* bias, std::int64_t width,
                          StreamView stream) {
  if (width % pack_width<T> == 0) {
    bias_activation_packs<<<static_cast<unsigned>(step.rows), threads, 0, cuda_stream(stream)>>>(
        step.activation, values, bias, static_cast<int>(width / pack_width<T>));
  } else if constexpr (std::same_as<T, float>) {
    const std::int64_t count = step.rows * width, blocks = (count + threads - 1) / threads;
    bias_activation<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), threads, 0,
                      cuda_stream(stream)>>>(step.activation, values, bias, width, count);
  }
  check_launch("bias_activation");
}

void output_gradient_cuda(const LayeredStep& step, float* logits, const float* bias, StreamView stream) {
  constexpr int rows = threads / 32;
  output_gradient<<<static_cast<unsigned>((step.rows + rows - 1) / rows), threads, 0, cuda_stream(stream)>>>(
      step, logits, bias);
  check_launch("output_gradient");
}

bool is_small_output(std::int64_t width, std::int64_t classes) {
  return width % 4 == 0 && classes <= max_output_classes;
}

template <class T>
void output_layer_cuda(const LayeredStep& step, const OutputLayer<T>& layer, StreamView stream) {
  const auto start = [&]<int block_rows, int max_classes>() {
    const auto blocks = static_cast<unsigned>((step.rows + block_rows - 1) / block_rows);
    output_layer<block_rows, max_classes><<<blocks, threads, 0, cuda_stream(stream)>>>(step, layer);
  };
  if (step.classes <= 10)
    start.template operator()<8, 10>();
  else
    start.template operator()<4, max_output_classes>();
  check_launch("output_layer");
}

template <class T>
void hidden_gradient_cuda(const LayeredStep& step, const OutputLayer<T>& layer, T* gradient,
                          StreamView stream) {
  const auto start = [&]<int max_classes>() {
    const auto blocks = static_cast<unsigned>((layer.width + 31) / 32);
    hidden_gradient<max_classes>
        <<<blocks, dim3(16, strands<2>), 0, cuda_stream(stream)>>>(step, layer, gradient);
  };
  if (step.classes <= 12)
    start.template operator()<12>();
  else
    start.template operator()<max_output_classes>();
  check_launch("hidden_gradient");
}

template <class T>
void activation_gradient_cuda(const LayeredStep& step, T* gradient, const T* activation, float* bias,
                              std::int64_t width, StreamView stream) {
  const auto blocks = static_cast<unsigned>((width + 31) / 32);
  if (width % 4 == 0)
    activation_gradient<4>
        <<<blocks, dim3(8, strands<4>), 0, cuda_stream(stream)>>>(step, gradient, activation, bias, width);
  else
    activation_gradient<1>
        <<<blocks, dim3(32, strands<1>), 0, cuda_stream(stream)>>>(step, gradient, activation, bias, width);
  check_launch("activation_gradient");
}

void round_weights_cuda(const float* weights, BFloat16* rounded, std::int64_t count, StreamView stream) {
  round_weights<<<blocks_for(count / 8, threads), threads, 0, cuda_stream(stream)>>>(weights, rounded,
                                                                                     count / 8);
  check_launch("round_weights");
}

template void load_batch_cuda(const LayeredStep&, float*, StreamView);
template void load_batch_cuda(const LayeredStep&, BFloat16*, StreamView);
template void bias_activation_cuda(const LayeredStep&, float*, const float*, std::int64_t, StreamView);
template void bias_activation_cuda(const LayeredStep&, BFloat16*, const float*, std::int64_t, StreamView);
template void output_layer_cuda(const LayeredStep&, const OutputLayer<float>&, StreamView);
template void output_layer_cuda(const LayeredStep&, const OutputLayer<BFloat16>&, StreamView);
template void hidden_gradient_cuda(const LayeredStep&, const OutputLayer<float>&, float*, StreamView);
template void hidden_gradient_cuda(const LayeredStep&, const OutputLayer<BFloat16>&, BFloat16*, StreamView);
template void activation_gradient_cuda(const LayeredStep&, float*, const float*, float*, std::int64_t,
                                       StreamView);
template void activation_gradient_cuda(const LayeredStep&, BFloat16*, const BFloat16*, float*, std::int64_t,
                                       StreamView);

void finish_step_cuda(const LayeredStep& step, StreamView stream) {
  finish_step<<<1, threads, 0, cuda_stream(stream)>>>(step);
  check_launch("finish_step");
}

}  // namespace tandem::detail
