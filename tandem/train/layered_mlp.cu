#include "tandem/device/cuda.h"
#include "tandem/train/layered_mlp.h"
#include "tandem/train/mlp_math.cuh"

namespace tandem {
namespace {

constexpr int threads = 256;

__global__ void take_in(const LayeredStep step, float* input) {
  const std::int64_t now = *step.cursor, row = blockIdx.x;
  const LayeredBlock block = *step.block;
  const std::uint8_t* const image = block.images + block.samples[now * step.batch + row] * step.pixels;
  for (std::int64_t i = threadIdx.x; i < step.pixels; i += threads)
    input[row * step.pixels + i] = static_cast<float>(image[i]) * step.pixel_scale;
  if (row != 0 || threadIdx.x != 0) return;
  const UpdateNumbers<float> numbers = step.numbers[now];
  step.scalars[0] = -numbers.rate;
  step.scalars[1] = 1 - numbers.rate * numbers.decay;
  step.scalars[2] = 1;
  step.scalars[3] = 0;
}

__global__ void bias_activation(Activation activation, float* values, const float* bias, std::int64_t width,
                                std::int64_t count) {
  for (std::int64_t i = blockIdx.x * std::int64_t{threads} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads)
    values[i] = activated(activation, values[i] + bias[i % width]);
}

// The same for widths that are multiples of 4: a row a block, a turn of 4 a thread.
__global__ void bias_activation4(Activation activation, float4* values, const float4* bias, int quads) {
  float4* const row = values + std::int64_t{blockIdx.x} * quads;
  for (int i = threadIdx.x; i < quads; i += threads) {
    const float4 z = row[i], b = bias[i];
    row[i] = make_float4(activated(activation, z.x + b.x), activated(activation, z.y + b.y),
                         activated(activation, z.z + b.z), activated(activation, z.w + b.w));
  }
}

template <class F>
__device__ float over_warp(float value, F&& f) {
  for (int bit = 16; bit > 0; bit /= 2) value = f(value, __shfl_xor_sync(0xffffffffu, value, bit));
  return value;
}
__device__ float warp_sum(float value) {
  return over_warp(value, [](float a, float b) { return a + b; });
}

// A warp a row.
__global__ void output_gradient(const LayeredStep step, float* logits, const float* bias) {
  const std::int64_t row = blockIdx.x * std::int64_t{threads / 32} + threadIdx.x / 32;
  if (row >= step.rows) return;
  const int lane = threadIdx.x % 32, classes = static_cast<int>(step.classes);
  float* const z = logits + row * classes;
  const int label = step.block->labels[*step.cursor * step.batch + row];
  const auto rows = static_cast<float>(step.rows);
  const float infinity = __int_as_float(0x7f800000);
  float greatest = -infinity;
  for (int c = lane; c < classes; c += 32) greatest = fmaxf(greatest, z[c] += bias[c]);
  greatest = over_warp(greatest, [](float a, float b) { return fmaxf(a, b); });
  __syncwarp();
  const float wanted = z[label];
  __syncwarp();
  float loss = 0;
  if (step.loss == LossKind::cross_entropy) {
    float sum = 0, shifted = 0;
    for (int c = lane; c < classes; c += 32) {
      sum += expf(z[c] - greatest);
      shifted += z[c] - greatest;
    }
    sum = warp_sum(sum);
    shifted = warp_sum(shifted);
    const float here = 1 - step.label_smoothing,
                everywhere = step.label_smoothing / static_cast<float>(classes);
    loss = logf(sum) - here * (wanted - greatest) - everywhere * shifted;
    for (int c = lane; c < classes; c += 32)
      z[c] = (expf(z[c] - greatest) / sum - everywhere - (c == label ? here : 0)) / rows;
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
    step.row_correct[row] = wanted == greatest;
  }
}

// 32 columns a block; the rows in `strands` strands, whose sums are added in their order.
constexpr int strands = 32;

__global__ void slope_and_bias(const LayeredStep step, float* gradient, const float* activation, float* bias,
                               std::int64_t width) {
  __shared__ float sums[strands][33];
  const std::int64_t column = blockIdx.x * std::int64_t{32} + threadIdx.x;
  float sum = 0;
  if (column < width) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.y; row < step.rows; row += strands) {
      const std::int64_t at = row * width + column;
      float g = gradient[at];
      if (activation) gradient[at] = g *= activation_slope(step.activation, activation[at]);
      sum += g;
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int strand = 1; strand < strands; ++strand) sum += sums[strand][threadIdx.x];
  const UpdateNumbers<float> numbers = step.numbers[*step.cursor];
  float unused = 0;
  SgdRule{}(bias[column], sum, unused, unused, numbers);
}

__global__ void finish_step(const LayeredStep step) {
  __shared__ double losses[threads];
  __shared__ int hits[threads];
  double loss = 0;
  int correct = 0;
  for (std::int64_t row = threadIdx.x; row < step.rows; row += threads) {
    loss += step.row_losses[row];
    correct += step.row_correct[row];
  }
  losses[threadIdx.x] = loss;
  hits[threadIdx.x] = correct;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    losses[threadIdx.x] += losses[threadIdx.x + half];
    hits[threadIdx.x] += hits[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  *step.loss_sum += losses[0];
  *step.correct += hits[0];
  ++*step.cursor;
}

}  // namespace

void take_in_cuda(const LayeredStep& step, float* input, StreamView stream) {
  take_in<<<static_cast<unsigned>(step.rows), threads, 0, cuda_stream(stream)>>>(step, input);
  check_launch("take_in");
}

void bias_activation_cuda(const LayeredStep& step, float* values, const float* bias, std::int64_t width,
                          StreamView stream) {
  if (width % 4 == 0) {
    bias_activation4<<<static_cast<unsigned>(step.rows), threads, 0, cuda_stream(stream)>>>(
        step.activation, reinterpret_cast<float4*>(values), reinterpret_cast<const float4*>(bias),
        static_cast<int>(width / 4));
  } else {
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

void slope_and_bias_cuda(const LayeredStep& step, float* gradient, const float* activation, float* bias,
                         std::int64_t width, StreamView stream) {
  slope_and_bias<<<static_cast<unsigned>((width + 31) / 32), dim3(32, strands), 0, cuda_stream(stream)>>>(
      step, gradient, activation, bias, width);
  check_launch("slope_and_bias");
}

void finish_step_cuda(const LayeredStep& step, StreamView stream) {
  finish_step<<<1, threads, 0, cuda_stream(stream)>>>(step);
  check_launch("finish_step");
}

}  // namespace tandem
