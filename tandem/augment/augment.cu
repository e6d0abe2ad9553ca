// Augmentation on CUDA, one fused pass at a time. The common pass on small gray images has its own kernel
// (augment_small.cuh); the kernel here handles any pass on any image. A block works on one image: it samples
// the arguments, then each thread computes eight consecutive bytes, the number that one block of random words
// covers.
#include <algorithm>
#include <string>

#include "tandem/augment/augment_kernel.h"
#include "tandem/augment/augment_pass.cuh"
#include "tandem/augment/augment_small.cuh"
#include "tandem/core/error.h"
#include "tandem/device/buffer.h"
#include "tandem/device/cuda.h"

namespace tandem::detail {
namespace {

constexpr int threads = 128;
constexpr int groups_per_thread = 8;  // of 8 bytes, if the image has that many
constexpr std::int64_t max_scratch = std::int64_t{256} << 20;
static_assert(threads >= max_augment_steps);

// Samples the steps of the pass for this block's image into shared memory.
__device__ const SampledStep* sample_pass(const CudaPassParams& params) {
  __shared__ alignas(SampledStep) std::byte memory[max_augment_steps * sizeof(SampledStep)];
  auto* const steps = reinterpret_cast<SampledStep*>(memory);
  const int step = params.pass.begin + static_cast<int>(threadIdx.x);
  if (step < params.pass.end) steps[threadIdx.x] = params.sample(params.key(blockIdx.x), step);
  __syncthreads();
  return steps;
}

// An image after a sequence of moves; caches the RowMove of one row.
struct MovedRow {
  const SampledStep* moves;
  int count;
  const ImageSize& size;
  std::int32_t y = -1;
  RowMove move = {};

  __device__ const RowMove& at(std::int32_t row) {
    if (row != y) move = row_move(moves, count, size, y = row);
    return move;
  }
  // The byte of a channel of pixel (x, row).
  __device__ std::int32_t level(const std::uint8_t* image, std::int32_t x, std::int32_t row, int channel) {
    const RowMove& from = at(row);
    if (x < from.begin || x >= from.end) return 0;
    return image[(from.row * size.width + from.column(x)) * size.channels + channel];
  }
};

// What a pass resamples, after the moves before it; caches two rows.
struct Source {
  const std::uint8_t* image;
  MovedRow upper, lower;

  __device__ std::int32_t linear(const SourceMap& map, std::int64_t column, std::int64_t row, int channel) {
    const ImageSize& size = upper.size;
    const auto x = static_cast<std::int32_t>(column >> map.fraction);
    const auto y = static_cast<std::int32_t>(row >> map.fraction);
    const auto weight = [&](std::int64_t at) {
      return static_cast<std::int32_t>(at >> (map.fraction - weight_bits)) & ((1 << weight_bits) - 1);
    };
    const bool right = x + 1 < size.width, below = y + 1 < size.height;
    return interpolate_levels(
        upper.level(image, x, y, channel), right ? upper.level(image, x + 1, y, channel) : 0,
        below ? lower.level(image, x, y + 1, channel) : 0,
        right && below ? lower.level(image, x + 1, y + 1, channel) : 0, weight(column), weight(row));
  }
  __device__ std::int32_t nearest(const SourceMap& map, std::int64_t column, std::int64_t row, int channel) {
    const std::int64_t half = std::int64_t{1} << (map.fraction - 1);
    return upper.level(image, static_cast<std::int32_t>((column + half) >> map.fraction),
                       static_cast<std::int32_t>((row + half) >> map.fraction), channel);
  }
  // The sum of the neighbors of a pixel, weighted by the kernel or by the transposed one.
  __device__ std::int32_t weighted_sum(const BlurKernel& kernel, bool transposed, std::int32_t x,
                                       std::int32_t y, int channel) {
    const ImageSize& size = upper.size;
    const int height = transposed ? kernel.width : kernel.height;
    const int width = transposed ? kernel.height : kernel.width;
    std::int32_t sum = 0;
    for (int i = 0; i < height; ++i) {
      const std::int32_t row = y + i - height / 2;
      if (row < 0 || row >= size.height) continue;
      for (int j = 0; j < width; ++j) {
        const std::int32_t column = x + j - width / 2;
        if (column < 0 || column >= size.width) continue;
        sum += kernel.weights[transposed ? j * kernel.width + i : i * kernel.width + j] *
               upper.level(image, column, row, channel);
      }
    }
    return sum;
  }
  __device__ std::int32_t blurred(const BlurKernel& kernel, std::int32_t x, std::int32_t y, int channel) {
    const std::int32_t down = kernel.gradient ? weighted_sum(kernel, true, x, y, channel) : 0;
    return blurred_level(weighted_sum(kernel, false, x, y, channel), down, kernel.gradient,
                         blur_divisor(kernel));
  }
};

// The indices and weights of four spline coefficients along one axis, mirrored at the borders.
struct SplineTaps {
  std::int32_t index[4];
  float weight[4];

  __device__ SplineTaps(std::int64_t at, int fraction, std::int32_t size) {
    const auto first = static_cast<std::int32_t>(at >> fraction) - 1;
    const auto one = std::int64_t{1} << fraction;
    const float t = static_cast<float>(at & (one - 1)) / static_cast<float>(one), u = 1 - t;
    weight[0] = u * u * u / 6;
    weight[1] = (t * t * (t - 2) * 3 + 4) / 6;
    weight[2] = (u * u * (u - 2) * 3 + 4) / 6;
    weight[3] = t * t * t / 6;
    for (int i = 0; i < 4; ++i) {
      index[i] = size == 1 ? 0 : abs(first + i);
      if (index[i] >= size) index[i] = abs(2 * (size - 1) - index[i]);
    }
  }
};

__device__ std::int32_t cubic(const float* coefficients, const ImageSize& size, const SourceMap& map,
                              std::int64_t column, std::int64_t row, int channel) {
  const SplineTaps across(column, map.fraction, size.width), down(row, map.fraction, size.height);
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    const float* const line = coefficients + down.index[i] * size.width * size.channels + channel;
    float in_line = 0;
    for (int j = 0; j < 4; ++j) in_line += across.weight[j] * line[across.index[j] * size.channels];
    sum += down.weight[i] * in_line;
  }
  return min(max(__float2int_rd(sum + 0.5f), 0), 255);
}

__global__ void __launch_bounds__(threads) augment_generic(const __grid_constant__ CudaPassParams params) {
  const SampledStep* const steps = sample_pass(params);
  const FusedPass& pass = params.pass;
  const ImageSize& size = params.size;
  const auto bytes = static_cast<std::int32_t>(size.bytes()), groups = (bytes - 1) / 8 + 1;
  const SampledStep* const resample = steps + (pass.resample - pass.begin);
  const SourceMap& map = resample->map;
  const std::int64_t last_column = std::int64_t{size.width - 1} << map.fraction;
  const std::int64_t last_row = std::int64_t{size.height - 1} << map.fraction;
  const MovedRow before{steps, pass.resample - pass.begin, size};
  Source source{params.source(blockIdx.x), before, before};
  MovedRow after{resample + 1, pass.moves_end - pass.resample - 1, size};
  const float* const coefficients = params.coefficients + blockIdx.x * size.bytes();
  std::uint8_t* const out = params.out + blockIdx.x * size.bytes();

  // `x` and `y` are output coordinates.
  const auto level = [&](std::int32_t x, std::int32_t y, int channel) -> std::int32_t {
    if (!pass.resamples()) return source.upper.level(source.image, x, y, channel);
    const RowMove& move = after.at(y);
    if (x < move.begin || x >= move.end) return 0;
    if (resample->kind == AugmentKind::blur && resample->applied)
      return source.blurred(params.recipe.steps[pass.resample].kernel, x + move.offset, move.row, channel);
    if (resample->kind == AugmentKind::reflected_shift)
      return source.upper.level(source.image, reflected(x + move.offset + resample->dx, size.width),
                                reflected(move.row + resample->dy, size.height), channel);
    const std::int64_t column = map.column(x + move.offset, move.row);
    const std::int64_t row = map.row(x + move.offset, move.row);
    if (column < 0 || column > last_column || row < 0 || row > last_row) return 0;
    switch (resample->interpolation) {
      case Interpolation::nearest:
        return source.nearest(map, column, row, channel);
      case Interpolation::linear:
        return source.linear(map, column, row, channel);
      case Interpolation::cubic:
        return cubic(coefficients, size, map, column, row, channel);
    }
    return 0;
  };

  const auto stride = static_cast<std::int32_t>(gridDim.y * threads);
  for (auto group = static_cast<std::int32_t>(blockIdx.y * threads + threadIdx.x); group < groups;
       group += stride) {
    const std::int32_t first = 8 * group, count = min(8, bytes - first);
    std::int32_t pixel = first / size.channels, channel = first - pixel * size.channels;
    std::int32_t y = pixel / size.width, x = pixel - y * size.width;
    std::int32_t levels[8] = {};
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const std::int32_t value = level(x, y, channel);
#pragma unroll
      for (int j = 0; j < 8; ++j) levels[j] = i == j ? value : levels[j];
      if (++channel < size.channels) continue;
      channel = 0;
      if (++x < size.width) continue;
      x = 0;
      ++y;
    }
    RandomKey key = params.key(blockIdx.x);
    for (int step = pass.moves_end; step < pass.end; ++step) {
      key.operation = static_cast<std::uint32_t>(step);
      const Words4 block = key.block(1 + static_cast<std::uint32_t>(group));
      const std::int32_t noise = steps[step - pass.begin].noise;
#pragma unroll
      for (int i = 0; i < 8; ++i) levels[i] = noisy_level(levels[i], noise, noise_bits(block, i));
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < count) out[first + i] = static_cast<std::uint8_t>(levels[i]);
  }
}

// Replaces `count` values that are `step` apart by the coefficients of their spline (Unser 1999), with
// SciPy's initial value for a line that is mirrored at its ends.
__device__ void filter_line(float* line, std::int32_t count, std::int32_t step) {
  if (count < 2) return;
  constexpr float pole = -0.26794919243f;         // √3 − 2
  const std::int32_t terms = min(count - 1, 32);  // later terms are below the rounding error
  float last_power = pole;
  for (std::int32_t i = 1; i < terms; ++i) last_power *= pole;
  if (count - 1 > terms) last_power = 0;
  float power = pole, start = line[0] + last_power * line[(count - 1) * step];
  for (std::int32_t i = 1; i < terms; ++i, power *= pole)
    start += power * (line[i * step] + last_power * line[(count - 1 - i) * step]);
  float previous = line[0] = 6 * start / (1 - last_power * last_power);
  for (std::int32_t i = 1; i < count; ++i) previous = line[i * step] = 6 * line[i * step] + pole * previous;
  const float before = line[(count - 2) * step];
  previous = line[(count - 1) * step] = (pole * before + previous) * pole / (pole * pole - 1);
  for (std::int32_t i = count - 2; i >= 0; --i)
    previous = line[i * step] = pole * (previous - line[i * step]);
}

// One thread per column: reads the image after the moves before the resampling, and filters the column.
__global__ void __launch_bounds__(threads)
    spline_columns(const __grid_constant__ CudaPassParams params, float* coefficients) {
  const SampledStep* const steps = sample_pass(params);
  const ImageSize& size = params.size;
  MovedRow moved{steps, params.pass.resample - params.pass.begin, size};
  const std::uint8_t* const image = params.source(blockIdx.x);
  const std::int32_t across = size.width * size.channels;
  for (auto column = static_cast<std::int32_t>(blockIdx.y * threads + threadIdx.x); column < across;
       column += static_cast<std::int32_t>(gridDim.y * threads)) {
    float* const line = coefficients + blockIdx.x * size.bytes() + column;
    const std::int32_t x = column / size.channels, channel = column - x * size.channels;
    for (std::int32_t y = 0; y < size.height; ++y)
      line[y * across] = static_cast<float>(moved.level(image, x, y, channel));
    filter_line(line, size.height, across);
  }
}

// One thread per row and channel.
__global__ void __launch_bounds__(threads) spline_rows(ImageSize size, float* coefficients) {
  for (auto row = static_cast<std::int32_t>(blockIdx.y * threads + threadIdx.x);
       row < size.height * size.channels; row += static_cast<std::int32_t>(gridDim.y * threads)) {
    const std::int32_t y = row / size.channels, channel = row - y * size.channels;
    filter_line(coefficients + blockIdx.x * size.bytes() + y * size.width * size.channels + channel,
                size.width, size.channels);
  }
}

// One column of blocks per image.
dim3 blocks_for(const CudaPassParams& params, std::int64_t items) {
  return dim3(static_cast<unsigned>(params.count),
              static_cast<unsigned>(std::clamp<std::int64_t>((items + threads - 1) / threads, 1, 65535)));
}

bool is_cubic(const Recipe& recipe, const FusedPass& pass) {
  return pass.resamples() && recipe.steps[pass.resample].interpolation == Interpolation::cubic;
}

void launch_pass(CudaPassParams params, float* coefficients, StreamView stream) {
  if (augment_small_images(params, stream)) return;
  const ImageSize& size = params.size;
  if (is_cubic(params.recipe, params.pass)) {
    spline_columns<<<blocks_for(params, std::int64_t{size.width} * size.channels), threads, 0,
                     cuda_stream(stream)>>>(params, coefficients);
    check_launch("augment (spline, columns)");
    spline_rows<<<blocks_for(params, std::int64_t{size.height} * size.channels), threads, 0,
                  cuda_stream(stream)>>>(size, coefficients);
    check_launch("augment (spline, rows)");
    params.coefficients = coefficients;
  }
  augment_generic<<<blocks_for(params, (size.bytes() + 8 * groups_per_thread - 1) / (8 * groups_per_thread)),
                    threads, 0, cuda_stream(stream)>>>(params);
  check_launch("augment");
}

}  // namespace

template <>
void augment_kernel<Backend::cuda>(const AugmentBatch& batch, StreamView stream) {
  const std::int64_t bytes = batch.size.bytes();
  if (batch.count == 0 || bytes == 0) return;
  if (bytes >= std::int64_t{1} << 31)
    throw Error("[augment] expected images of less than 2147483648 bytes on a GPU, got " +
                std::to_string(bytes));
  int passes = 0;
  bool any_cubic = false;
  for (int begin = 0; begin < batch.recipe.count; ++passes) {
    const FusedPass pass = fused_pass_at(batch.recipe, begin);
    any_cubic = any_cubic || is_cubic(batch.recipe, pass);
    begin = pass.end;
  }
  passes = std::max(passes, 1);  // a pass without steps copies the images

  // If memory between passes is needed, the batch is processed in chunks to bound it.
  const std::int64_t image_scratch = (passes > 1 ? bytes : 0) + (any_cubic ? 4 * bytes : 0);
  const std::int64_t chunk = std::min<std::int64_t>(
      batch.count, image_scratch == 0 ? INT32_MAX : std::max<std::int64_t>(max_scratch / image_scratch, 1));
  const Buffer between(passes > 1 ? chunk * bytes : 0, stream);
  const Buffer coefficients(any_cubic ? 4 * chunk * bytes : 0, stream);
  for (std::int64_t first = 0; first < batch.count; first += chunk) {
    CudaPassParams params;
    params.recipe = batch.recipe;
    params.size = batch.size;
    params.seed = batch.seed;
    params.epoch = batch.epoch;
    params.samples = batch.samples + first;
    params.keys = batch.keys ? batch.keys + first : params.samples;
    params.in = batch.images;
    params.image_count = batch.image_count;
    params.count = std::min(chunk, batch.count - first);
    // Passes alternate between the output and the intermediate buffer, so that the last one writes the
    // output.
    for (int remaining = passes, begin = 0; remaining > 0; --remaining) {
      params.pass = fused_pass_at(batch.recipe, begin);
      params.out =
          remaining % 2 == 1 ? batch.out + first * bytes : reinterpret_cast<std::uint8_t*>(between.data());
      launch_pass(params, reinterpret_cast<float*>(coefficients.data()), stream);
      params.in = params.out;
      params.gathered = true;
      begin = params.pass.end;
    }
  }
}

}  // namespace tandem::detail
