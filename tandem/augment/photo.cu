// Photographs on CUDA. One kernel draws, a thread an image. A second one crops, resizes and flips: a block
// makes a band of rows, its weights and the input rows it needs, already of the output's width, in shared
// memory, so that both passes of the resize are one kernel. Colours, RandAugment and erasing, where a recipe
// has them, are a third: a block an image, for some of them need all of it.
#include <algorithm>
#include <cstddef>

#include "tandem/augment/photo.h"
#include "tandem/augment/photo_op.h"
#include "tandem/device/buffer.h"
#include "tandem/device/cuda.h"

namespace tandem {
namespace {

constexpr int threads = 256, finish_threads = 512;
constexpr int band_rows = 32;
// What a block keeps: a resize that needs more (a reduction by more than 11) computes every pixel by itself.
constexpr int most_taps = 24, kept_rows = 48;
constexpr std::int64_t most_scratch = std::int64_t{256} << 20;
constexpr std::int32_t half = 1 << (resize_weight_bits - 1);
static_assert(most_taps <= kept_rows);

__global__ void draw_photos(PhotoBatch batch, PhotoDraw* draws) {
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (i >= batch.count) return;
  const std::int32_t sample = batch.samples[i];
  const bool there = sample >= 0 && sample < batch.photo_count && batch.places[sample].height > 0;
  const PhotoPlace place = there ? batch.places[sample] : PhotoPlace{};
  const DrawKey key{.seed = batch.seed, .epoch = batch.epoch, .sample = static_cast<std::uint32_t>(sample)};
  draws[i] = there ? draw_photo(batch.recipe, place.height, place.width, key) : PhotoDraw{};
}

// The taps of one output pixel; the weight of each is computed when it is asked for.
struct DeviceTaps {
  ResizeTaps taps;
  double sum = 0;

  __device__ DeviceTaps(ResizeFilter filter, std::int64_t in, std::int64_t out, std::int64_t i)
      : taps(resize_taps(filter, in, out, i)) {
    for (std::int64_t k = 0; k < taps.count; ++k) sum += taps.weight(k);
  }
  __device__ std::int32_t weight(std::int64_t k) const { return fixed_resize_weight(taps.weight(k) / sum); }
};

// A block's shared memory: where each column and each row of the band reads, the weights, the kept rows.
struct BandMemory {
  std::int32_t *column_first, *column_count, *column_weights;  // weight k of column x at k · width + x
  std::int32_t *row_first, *row_count, *row_weights;           // weight k of row y at y · most_taps + k
  std::uint8_t* kept;

  __host__ __device__ static std::int64_t bytes(std::int64_t width) {
    return 4 * (width * (2 + most_taps) + band_rows * (2 + most_taps)) + kept_rows * 3 * width;
  }
  __device__ BandMemory(std::byte* memory, int width) {
    auto* const words = reinterpret_cast<std::int32_t*>(memory);
    column_first = words;
    column_count = column_first + width;
    column_weights = column_count + width;
    row_first = column_weights + most_taps * width;
    row_count = row_first + band_rows;
    row_weights = row_count + band_rows;
    kept = reinterpret_cast<std::uint8_t*>(row_weights + band_rows * most_taps);
  }
};

// Where the box of a photograph begins, and how far apart its rows are.
struct BoxPixels {
  const std::uint8_t* first;
  std::int64_t row_bytes;

  __device__ const std::uint8_t* at(std::int64_t y, std::int64_t x) const {
    return first + y * row_bytes + 3 * x;
  }
};

struct Band {
  const PhotoRecipe& recipe;
  const PhotoDraw& draw;
  BoxPixels pixels;
  int begin, end;  // rows of the result
  std::uint8_t* out;

  __device__ std::uint8_t* pixel(int y, int x) const {
    return out + 3 * (static_cast<std::int64_t>(y) * recipe.width + (draw.flip ? recipe.width - 1 - x : x));
  }
};

__device__ void fill_weights(const Band& band, const BandMemory& memory) {
  const PhotoDraw& draw = band.draw;
  const int width = band.recipe.width, rows = band.end - band.begin;
  for (int i = static_cast<int>(threadIdx.x); i < width + rows; i += threads) {
    const bool column = i < width;
    const DeviceTaps taps =
        column ? DeviceTaps(band.recipe.filter, draw.box.width, draw.resized_width, draw.left + i)
               : DeviceTaps(band.recipe.filter, draw.box.height, draw.resized_height,
                            draw.top + band.begin + i - width);
    const int place = column ? i : i - width;
    (column ? memory.column_first : memory.row_first)[place] = static_cast<std::int32_t>(taps.taps.first);
    (column ? memory.column_count : memory.row_count)[place] = static_cast<std::int32_t>(taps.taps.count);
    for (int k = 0; k < static_cast<int>(taps.taps.count); ++k)
      (column ? memory.column_weights[k * width + place] : memory.row_weights[place * most_taps + k]) =
          taps.weight(k);
  }
}

// As many rows of the result at a time as the kept input rows serve.
__device__ void resize_band(const Band& band, const BandMemory& memory) {
  const int width = band.recipe.width, row_bytes = 3 * width, rows = band.end - band.begin;
  fill_weights(band, memory);
  __syncthreads();
  for (int y = 0; y < rows;) {
    const int from = memory.row_first[y];
    int end = y, to = from;
    for (; end < rows && memory.row_first[end] + memory.row_count[end] - from <= kept_rows; ++end)
      to = memory.row_first[end] + memory.row_count[end];
    for (int i = static_cast<int>(threadIdx.x); i < (to - from) * width; i += threads) {
      const int row = i / width, x = i - row * width;
      const std::uint8_t* in = band.pixels.at(from + row, memory.column_first[x]);
      std::int32_t r = half, g = half, b = half;
      for (int k = 0; k < memory.column_count[x]; ++k, in += 3) {
        const std::int32_t weight = memory.column_weights[k * width + x];
        r += weight * in[0];
        g += weight * in[1];
        b += weight * in[2];
      }
      std::uint8_t* const kept = memory.kept + row * row_bytes + 3 * x;
      kept[0] = resized_level(r);
      kept[1] = resized_level(g);
      kept[2] = resized_level(b);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < (end - y) * row_bytes; i += threads) {
      const int row = y + i / row_bytes, byte = i % row_bytes;
      const std::uint8_t* kept = memory.kept + (memory.row_first[row] - from) * row_bytes + byte;
      std::int32_t sum = half;
      for (int k = 0; k < memory.row_count[row]; ++k)
        sum += memory.row_weights[row * most_taps + k] * kept[k * row_bytes];
      band.pixel(band.begin + row, byte / 3)[byte % 3] = resized_level(sum);
    }
    __syncthreads();
    y = end;
  }
}

// Every pixel by itself, for reductions with too many taps to keep.
__device__ void resize_directly(const Band& band) {
  const PhotoDraw& draw = band.draw;
  const int width = band.recipe.width;
  for (int i = static_cast<int>(threadIdx.x); i < (band.end - band.begin) * width; i += threads) {
    const int y = band.begin + i / width, x = i % width;
    const DeviceTaps columns(band.recipe.filter, draw.box.width, draw.resized_width, draw.left + x);
    const DeviceTaps rows(band.recipe.filter, draw.box.height, draw.resized_height, draw.top + y);
    std::int32_t sum[3] = {half, half, half};
    for (std::int64_t row = 0; row < rows.taps.count; ++row) {
      const std::uint8_t* in = band.pixels.at(rows.taps.first + row, columns.taps.first);
      std::int32_t level[3] = {half, half, half};
      for (std::int64_t k = 0; k < columns.taps.count; ++k, in += 3) {
        const std::int32_t weight = columns.weight(k);
        for (int c = 0; c < 3; ++c) level[c] += weight * in[c];
      }
      const std::int32_t weight = rows.weight(row);
      for (int c = 0; c < 3; ++c) sum[c] += weight * resized_level(level[c]);
    }
    std::uint8_t* const out = band.pixel(y, x);
    for (int c = 0; c < 3; ++c) out[c] = resized_level(sum[c]);
  }
}

__global__ void __launch_bounds__(threads)
    resize_photos(PhotoBatch batch, const PhotoDraw* draws, bool keep) {
  extern __shared__ std::byte shared[];
  const PhotoRecipe& recipe = batch.recipe;
  const PhotoDraw& draw = draws[blockIdx.x];
  std::uint8_t* const out = batch.out + blockIdx.x * (std::int64_t{3} * recipe.height * recipe.width);
  const int begin = static_cast<int>(blockIdx.y) * band_rows;
  const int end = begin + band_rows < recipe.height ? begin + band_rows : recipe.height;
  if (draw.box.height == 0) {  // nothing there
    for (int i = 3 * begin * recipe.width + static_cast<int>(threadIdx.x); i < 3 * end * recipe.width;
         i += threads)
      out[i] = 0;
    return;
  }
  const PhotoPlace& place = batch.places[batch.samples[blockIdx.x]];
  const Band band{
      recipe,
      draw,
      BoxPixels{batch.pixels + place.offset + 3 * (draw.box.y * place.width + draw.box.x), 3 * place.width},
      begin,
      end,
      out};
  const bool fits = keep &&
                    most_resize_taps(recipe.filter, draw.box.width, draw.resized_width) <= most_taps &&
                    most_resize_taps(recipe.filter, draw.box.height, draw.resized_height) <= most_taps;
  if (fits)
    resize_band(band, BandMemory(shared, recipe.width));
  else
    resize_directly(band);
}

struct FinishMemory {
  std::uint32_t histogram[3][256];
  unsigned long long grey_sum;
  std::uint8_t tables[3][256];
};

__device__ void apply_table(const PhotoOp& op, int pixels, std::uint8_t* image, FinishMemory& memory) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 3 * 256; i += finish_threads) memory.histogram[i / 256][i % 256] = 0;
  if (thread == 0) memory.grey_sum = 0;
  __syncthreads();
  if (needs_grey_mean(op.kind)) {
    unsigned long long sum = 0;
    for (int i = thread; i < pixels; i += finish_threads)
      sum += grey_level(image[3 * i], image[3 * i + 1], image[3 * i + 2]);
    atomicAdd(&memory.grey_sum, sum);
  }
  if (needs_histogram(op.kind))
    for (int i = thread; i < 3 * pixels; i += finish_threads)
      atomicAdd(&memory.histogram[i % 3][image[i]], 1u);
  __syncthreads();
  if (thread < 3)
    make_table(op, rounded_mean(static_cast<std::int64_t>(memory.grey_sum), pixels), memory.histogram[thread],
               memory.tables[thread]);
  __syncthreads();
  for (int i = thread; i < 3 * pixels; i += finish_threads) image[i] = memory.tables[i % 3][image[i]];
}

__device__ void apply_to_pixels(const PhotoOp& op, int pixels, std::uint8_t* image) {
  for (int i = static_cast<int>(threadIdx.x); i < pixels; i += finish_threads) {
    std::uint8_t* const at = image + 3 * i;
    const PhotoPixel pixel{at[0], at[1], at[2]};
    const PhotoPixel to =
        op.kind == PhotoOpKind::hue ? turn_hue(pixel, op.value) : saturate_pixel(pixel, op.value);
    at[0] = static_cast<std::uint8_t>(to.r);
    at[1] = static_cast<std::uint8_t>(to.g);
    at[2] = static_cast<std::uint8_t>(to.b);
  }
}

__device__ std::uint8_t from_elsewhere(const PhotoOp& op, int height, int width, const std::uint8_t* copy,
                                       int i) {
  const int row = 3 * width, y = i / row, x = i % row / 3;
  if (op.moves()) {
    std::int32_t from_x = 0, from_y = 0;
    if (!moved_from(op, x, y, height, width, from_x, from_y)) return 0;
    return copy[from_y * row + 3 * from_x + i % 3];
  }
  const std::uint8_t* const at = copy + i;
  if (y == 0 || y + 1 == height || x == 0 || x + 1 == width) return *at;
  const std::int32_t around =
      at[-row - 3] + at[-row] + at[-row + 3] + at[-3] + at[3] + at[row - 3] + at[row] + at[row + 3];
  return static_cast<std::uint8_t>(sharpen_level(*at, around, op.value));
}

// `copies`: memory for as many images, where a recipe may need it.
__global__ void __launch_bounds__(finish_threads)
    finish_photos(PhotoRecipe recipe, const PhotoDraw* draws, std::uint8_t* images, std::uint8_t* copies) {
  __shared__ FinishMemory memory;
  const int pixels = recipe.height * recipe.width, thread = static_cast<int>(threadIdx.x);
  std::uint8_t* const image = images + blockIdx.x * (std::int64_t{3} * pixels);
  const PhotoDraw& draw = draws[blockIdx.x];
  for (int step = 0; step < draw.op_count; ++step) {
    const PhotoOp& op = draw.ops[step];
    if (is_table(op.kind)) {
      apply_table(op, pixels, image, memory);
    } else if (op.kind == PhotoOpKind::saturation || op.kind == PhotoOpKind::hue) {
      apply_to_pixels(op, pixels, image);
    } else if (op.kind != PhotoOpKind::identity) {
      std::uint8_t* const copy = copies + blockIdx.x * (std::int64_t{3} * pixels);
      for (int i = thread; i < 3 * pixels; i += finish_threads) copy[i] = image[i];
      __syncthreads();
      for (int i = thread; i < 3 * pixels; i += finish_threads)
        image[i] = from_elsewhere(op, recipe.height, recipe.width, copy, i);
    }
    __syncthreads();
  }
  const PixelBox& box = draw.erase;
  const int bytes = static_cast<int>(3 * box.width * box.height), row = static_cast<int>(3 * box.width);
  for (int i = thread; i < bytes; i += finish_threads)
    image[3 * ((box.y + i / row) * recipe.width + box.x) + i % row] = recipe.erase.colour[i % 3];
}

// True when blocks may keep so many bytes.
bool allow_shared(std::int64_t bytes) {
  int device = 0, most = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  if (bytes > most) return false;
  cuda_check(cudaFuncSetAttribute(resize_photos, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "cudaFuncSetAttribute");
  return true;
}

}  // namespace

template <>
void photo_kernel<Backend::cuda>(const PhotoBatch& batch, StreamView stream) {
  const PhotoRecipe& recipe = batch.recipe;
  const std::int64_t bytes = std::int64_t{3} * recipe.height * recipe.width;
  const bool copies = recipe.rand_augment.count > 0;
  const bool finish = copies || !recipe.jitter.empty() || recipe.erase.probability > 0;
  const std::int64_t shared = BandMemory::bytes(recipe.width);
  const bool keep = allow_shared(shared);
  // Where memory for copies is needed, images go through it in portions.
  const std::int64_t portion =
      std::min<std::int64_t>(batch.count, copies ? std::max<std::int64_t>(most_scratch / bytes, 1) : 1 << 20);
  const Buffer draw_memory(static_cast<std::size_t>(portion) * sizeof(PhotoDraw), stream);
  const Buffer copy_memory(static_cast<std::size_t>(copies ? portion * bytes : 0), stream);
  auto* const draws = reinterpret_cast<PhotoDraw*>(draw_memory.data());
  for (std::int64_t first = 0; first < batch.count; first += portion) {
    PhotoBatch part = batch;
    part.samples += first;
    part.out += first * bytes;
    part.count = std::min(portion, batch.count - first);
    const auto count = static_cast<unsigned>(part.count);
    draw_photos<<<(count + 63) / 64, 64, 0, cuda_stream(stream)>>>(part, draws);
    check_launch("photo (draws)");
    const dim3 blocks(count, static_cast<unsigned>((recipe.height + band_rows - 1) / band_rows));
    resize_photos<<<blocks, threads, keep ? static_cast<std::size_t>(shared) : 0, cuda_stream(stream)>>>(
        part, draws, keep);
    check_launch("photo (resize)");
    if (!finish) continue;
    finish_photos<<<count, finish_threads, 0, cuda_stream(stream)>>>(
        recipe, draws, part.out, reinterpret_cast<std::uint8_t*>(copy_memory.data()));
    check_launch("photo (colours)");
  }
}

}  // namespace tandem
