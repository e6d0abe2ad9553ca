// Augmentation on CUDA, pass by pass. The common pass on small grey images has a kernel of its own
// (augment_small.cuh); the one here takes any pass on any image. A block works on one image: it draws the
// arguments, then a thread computes eight consecutive bytes, as many as one block of random words serves.
#include <algorithm>
#include <string>

#include "tandem/augment/augment_pass.cuh"
#include "tandem/augment/augment_small.cuh"
#include "tandem/core/error.h"
#include "tandem/device/buffer.h"
#include "tandem/device/cuda.h"

namespace tandem {
namespace {

constexpr int threads = 128;
constexpr int groups_a_thread = 8;  // of 8 bytes, where an image has so many
constexpr std::int64_t most_scratch = std::int64_t{256} << 20;
static_assert(threads >= most_augment_steps);

// The drawn steps of this block's image, in shared memory; the first is the pass's first.
__device__ const DrawnStep* draw_pass(const PassOnDevice& work) {
  __shared__ alignas(DrawnStep) std::byte memory[most_augment_steps * sizeof(DrawnStep)];
  auto* const drawn = reinterpret_cast<DrawnStep*>(memory);
  const int step = work.pass.begin + static_cast<int>(threadIdx.x);
  if (step < work.pass.end) drawn[threadIdx.x] = work.draw(work.key(blockIdx.x), step);
  __syncthreads();
  return drawn;
}

// What a number of moves makes of an image, a row of it at hand.
struct MovedRow {
  const DrawnStep* moves;
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
    return image[(from.row * size.width + x + from.offset) * size.channels + channel];
  }
};

// A rotation's source, after the moves before it: two rows at hand.
struct Source {
  const std::uint8_t* image;
  MovedRow upper, lower;

  __device__ std::int32_t linear(const RotateMap& map, std::int64_t column, std::int64_t row, int channel) {
    const ImageSize& size = upper.size;
    const auto x = static_cast<std::int32_t>(column >> map.fraction);
    const auto y = static_cast<std::int32_t>(row >> map.fraction);
    const auto weight = [&](std::int64_t at) {
      return static_cast<std::int32_t>(at >> (map.fraction - weight_bits)) & ((1 << weight_bits) - 1);
    };
    const bool right = x + 1 < size.width, below = y + 1 < size.height;
    return between_levels(
        upper.level(image, x, y, channel), right ? upper.level(image, x + 1, y, channel) : 0,
        below ? lower.level(image, x, y + 1, channel) : 0,
        right && below ? lower.level(image, x + 1, y + 1, channel) : 0, weight(column), weight(row));
  }
  __device__ std::int32_t nearest(const RotateMap& map, std::int64_t column, std::int64_t row, int channel) {
    const std::int64_t half = std::int64_t{1} << (map.fraction - 1);
    return upper.level(image, static_cast<std::int32_t>((column + half) >> map.fraction),
                       static_cast<std::int32_t>((row + half) >> map.fraction), channel);
  }
};

// Along one axis: which four coefficients of a spline, mirrored at the borders, and how much of each.
struct SplineTaps {
  std::int32_t index[4];
  float weight[4];

  __device__ SplineTaps(std::int64_t at, int fraction, std::int32_t size) {
    const auto first = static_cast<std::int32_t>(at >> fraction) - 1;
    const auto whole = std::int64_t{1} << fraction;
    const float t = static_cast<float>(at & (whole - 1)) / static_cast<float>(whole), u = 1 - t;
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

__device__ std::int32_t cubic(const float* coefficients, const ImageSize& size, const RotateMap& map,
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

__global__ void __launch_bounds__(threads) augment_any(const __grid_constant__ PassOnDevice work) {
  const DrawnStep* const drawn = draw_pass(work);
  const AugmentPass& pass = work.pass;
  const ImageSize& size = work.size;
  const auto bytes = static_cast<std::int32_t>(size.bytes()), groups = (bytes - 1) / 8 + 1;
  const DrawnStep* const rotation = drawn + (pass.rotation - pass.begin);
  const RotateMap& map = rotation->map;
  const std::int64_t last_column = std::int64_t{size.width - 1} << map.fraction;
  const std::int64_t last_row = std::int64_t{size.height - 1} << map.fraction;
  const MovedRow before{drawn, pass.rotation - pass.begin, size};
  Source source{work.source(blockIdx.x), before, before};
  MovedRow after{rotation + 1, pass.moves_end - pass.rotation - 1, size};
  const float* const coefficients = work.coefficients + blockIdx.x * size.bytes();
  std::uint8_t* const out = work.out + blockIdx.x * size.bytes();

  // `x` and `y` are those of the output.
  const auto level = [&](std::int32_t x, std::int32_t y, int channel) -> std::int32_t {
    if (!pass.rotates()) return source.upper.level(source.image, x, y, channel);
    const RowMove& move = after.at(y);
    if (x < move.begin || x >= move.end) return 0;
    const std::int64_t column = map.column(x + move.offset, move.row);
    const std::int64_t row = map.row(x + move.offset, move.row);
    if (column < 0 || column > last_column || row < 0 || row > last_row) return 0;
    switch (rotation->interpolation) {
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
    const std::int32_t first = 8 * group, held = min(8, bytes - first);
    std::int32_t pixel = first / size.channels, channel = first - pixel * size.channels;
    std::int32_t y = pixel / size.width, x = pixel - y * size.width;
    std::int32_t levels[8] = {};
#pragma unroll 1
    for (int i = 0; i < held; ++i) {
      const std::int32_t found = level(x, y, channel);
#pragma unroll
      for (int j = 0; j < 8; ++j) levels[j] = i == j ? found : levels[j];
      if (++channel < size.channels) continue;
      channel = 0;
      if (++x < size.width) continue;
      x = 0;
      ++y;
    }
    DrawKey key = work.key(blockIdx.x);
    for (int step = pass.moves_end; step < pass.end; ++step) {
      key.operation = static_cast<std::uint32_t>(step);
      const Words4 block = key.block(1 + static_cast<std::uint32_t>(group));
      const std::int32_t noise = drawn[step - pass.begin].noise;
#pragma unroll
      for (int i = 0; i < 8; ++i) levels[i] = noisy_level(levels[i], noise, noise_bits(block, i));
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < held) out[first + i] = static_cast<std::uint8_t>(levels[i]);
  }
}

// From values to the coefficients of their spline along a line of `count` values, `step` apart (Unser 1999),
// with SciPy's start for a line that is mirrored at its ends.
__device__ void filter_line(float* line, std::int32_t count, std::int32_t step) {
  if (count < 2) return;
  constexpr float pole = -0.26794919243f;         // √3 − 2
  const std::int32_t terms = min(count - 1, 32);  // later ones are less than the rounding
  float far = pole;
  for (std::int32_t i = 1; i < terms; ++i) far *= pole;
  if (count - 1 > terms) far = 0;
  float power = pole, start = line[0] + far * line[(count - 1) * step];
  for (std::int32_t i = 1; i < terms; ++i, power *= pole)
    start += power * (line[i * step] + far * line[(count - 1 - i) * step]);
  float held = line[0] = 6 * start / (1 - far * far);
  for (std::int32_t i = 1; i < count; ++i) held = line[i * step] = 6 * line[i * step] + pole * held;
  const float before = line[(count - 2) * step];
  held = line[(count - 1) * step] = (pole * before + held) * pole / (pole * pole - 1);
  for (std::int32_t i = count - 2; i >= 0; --i) held = line[i * step] = pole * (held - line[i * step]);
}

// A thread a column: reads the image after the moves before its rotation, and filters downwards.
__global__ void __launch_bounds__(threads)
    spline_columns(const __grid_constant__ PassOnDevice work, float* coefficients) {
  const DrawnStep* const drawn = draw_pass(work);
  const ImageSize& size = work.size;
  MovedRow moved{drawn, work.pass.rotation - work.pass.begin, size};
  const std::uint8_t* const image = work.source(blockIdx.x);
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

// A thread a row of a channel.
__global__ void __launch_bounds__(threads) spline_rows(ImageSize size, float* coefficients) {
  for (auto row = static_cast<std::int32_t>(blockIdx.y * threads + threadIdx.x);
       row < size.height * size.channels; row += static_cast<std::int32_t>(gridDim.y * threads)) {
    const std::int32_t y = row / size.channels, channel = row - y * size.channels;
    filter_line(coefficients + blockIdx.x * size.bytes() + y * size.width * size.channels + channel,
                size.width, size.channels);
  }
}

// A column of blocks an image.
dim3 blocks_for(const PassOnDevice& work, std::int64_t items) {
  return dim3(static_cast<unsigned>(work.count),
              static_cast<unsigned>(std::clamp<std::int64_t>((items + threads - 1) / threads, 1, 65535)));
}

bool is_cubic(const Recipe& recipe, const AugmentPass& pass) {
  return pass.rotates() && recipe.steps[pass.rotation].interpolation == Interpolation::cubic;
}

void run_pass(PassOnDevice work, float* coefficients, StreamView stream) {
  if (augment_small_images(work, stream)) return;
  const ImageSize& size = work.size;
  if (is_cubic(work.recipe, work.pass)) {
    spline_columns<<<blocks_for(work, std::int64_t{size.width} * size.channels), threads, 0,
                     cuda_stream(stream)>>>(work, coefficients);
    check_launch("augment (spline, columns)");
    spline_rows<<<blocks_for(work, std::int64_t{size.height} * size.channels), threads, 0,
                  cuda_stream(stream)>>>(size, coefficients);
    check_launch("augment (spline, rows)");
    work.coefficients = coefficients;
  }
  augment_any<<<blocks_for(work, (size.bytes() + 8 * groups_a_thread - 1) / (8 * groups_a_thread)), threads,
                0, cuda_stream(stream)>>>(work);
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
  bool cubic_rotation = false;
  for (int begin = 0; begin < batch.recipe.count; ++passes) {
    const AugmentPass pass = pass_from(batch.recipe, begin);
    cubic_rotation = cubic_rotation || is_cubic(batch.recipe, pass);
    begin = pass.end;
  }
  passes = std::max(passes, 1);  // one that does nothing copies

  // Where memory between passes is needed, images go through it in portions.
  const std::int64_t image_scratch = (passes > 1 ? bytes : 0) + (cubic_rotation ? 4 * bytes : 0);
  const std::int64_t portion = std::min<std::int64_t>(
      batch.count, image_scratch == 0 ? INT32_MAX : std::max<std::int64_t>(most_scratch / image_scratch, 1));
  const Buffer between(passes > 1 ? portion * bytes : 0, stream);
  const Buffer coefficients(cubic_rotation ? 4 * portion * bytes : 0, stream);
  for (std::int64_t first = 0; first < batch.count; first += portion) {
    PassOnDevice work;
    work.recipe = batch.recipe;
    work.size = batch.size;
    work.seed = batch.seed;
    work.epoch = batch.epoch;
    work.samples = batch.samples + first;
    work.in = batch.images;
    work.images = batch.image_count;
    work.count = std::min(portion, batch.count - first);
    // Passes write to the result and to the memory between in turn, such that the last one writes the result.
    for (int left = passes, begin = 0; left > 0; --left) {
      work.pass = pass_from(batch.recipe, begin);
      work.out = left % 2 == 1 ? batch.out + first * bytes : reinterpret_cast<std::uint8_t*>(between.data());
      run_pass(work, reinterpret_cast<float*>(coefficients.data()), stream);
      work.in = work.out;
      work.gathered = true;
      begin = work.pass.end;
    }
  }
}

}  // namespace tandem
