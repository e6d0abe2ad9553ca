// Photo transforms on CUDA. The first kernel samples the arguments, one thread per image. The second crops,
// resizes and flips: one block per band of output rows, with the weights and the required input rows,
// resampled to the output's width, in shared memory, so that one kernel does both passes of the resize. The
// third applies the other operations if the recipe has them: one block per image, because some operations
// need the whole image.
#include <algorithm>
#include <cstddef>

#include "tandem/augment/photo_arguments.h"
#include "tandem/augment/photo_kernel.h"
#include "tandem/augment/photo_op.h"
#include "tandem/device/buffer.h"
#include "tandem/device/cuda.h"
#include "tandem/image/resize_weights.h"

namespace tandem::detail {
namespace {

constexpr int threads = 256, finish_threads = 512;
constexpr int band_rows = 32;
// The capacity of a block's shared memory. A resize that needs more taps (a reduction by more than 11)
// computes every pixel directly.
constexpr int max_taps = 24, max_resampled_rows = 48;
constexpr std::int64_t max_scratch = std::int64_t{256} << 20;
constexpr std::int32_t half = 1 << (resize_weight_bits - 1);
static_assert(max_taps <= max_resampled_rows);

__global__ void sample_photos(PhotoBatch batch, PhotoArguments* arguments) {
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (i >= batch.count) return;
  const std::int32_t sample = batch.samples[i];
  const bool exists = sample >= 0 && sample < batch.photo_count && batch.locations[sample].height > 0;
  const PhotoLocation photo = exists ? batch.locations[sample] : PhotoLocation{};
  const RandomKey key{.seed = batch.seed,
                      .epoch = batch.epoch,
                      .sample = static_cast<std::uint32_t>(batch.keys ? batch.keys[i] : sample)};
  arguments[i] = exists ? sample_photo(batch.recipe, photo.height, photo.width, key) : PhotoArguments{};
}

// The taps of one output pixel; weights are computed on demand.
struct DeviceTaps {
  ResizeTaps taps;
  double sum = 0;

  __device__ DeviceTaps(ResizeFilter filter, std::int64_t in, std::int64_t out, std::int64_t i)
      : taps(resize_taps(filter, in, out, i)) {
    for (std::int64_t k = 0; k < taps.count; ++k) sum += taps.weight(k);
  }
  __device__ std::int32_t weight(std::int64_t k) const { return fixed_resize_weight(taps.weight(k) / sum); }
};

// The shared memory of a block: the taps and weights of each column and of each row of the band, and the
// resampled input rows.
struct BandMemory {
  std::int32_t *column_first, *column_count, *column_weights;  // weight k of column x at k · width + x
  std::int32_t *row_first, *row_count, *row_weights;           // weight k of row y at y · max_taps + k
  std::uint8_t* resampled;

  __host__ __device__ static std::int64_t bytes(std::int64_t width) {
    return 4 * (width * (2 + max_taps) + band_rows * (2 + max_taps)) + max_resampled_rows * 3 * width;
  }
  __device__ BandMemory(std::byte* memory, int width) {
    auto* const words = reinterpret_cast<std::int32_t*>(memory);
    column_first = words;
    column_count = column_first + width;
    column_weights = column_count + width;
    row_first = column_weights + max_taps * width;
    row_count = row_first + band_rows;
    row_weights = row_count + band_rows;
    resampled = reinterpret_cast<std::uint8_t*>(row_weights + band_rows * max_taps);
  }
};

// Where the result is padded, the pixel of the resized box that is nearest.
__device__ std::int64_t nearest(std::int64_t position, std::int64_t size) {
  return position < 0 ? 0 : position < size ? position : size - 1;
}

// The pixels of the crop box of a photograph.
struct BoxPixels {
  const std::uint8_t* first;
  std::int64_t row_bytes;

  __device__ const std::uint8_t* at(std::int64_t y, std::int64_t x) const {
    return first + y * row_bytes + 3 * x;
  }
};

// The output rows of one block.
struct Band {
  const PhotoRecipe& recipe;
  const PhotoArguments& arguments;
  BoxPixels pixels;
  int begin, end;  // output rows
  std::uint8_t* out;

  __device__ bool is_padded(int y, int x) const {
    if (recipe.fit != PhotoFit::letterbox) return false;
    const std::int64_t row = arguments.top + y, column = arguments.left + x;
    return row < 0 || row >= arguments.resized_height || column < 0 || column >= arguments.resized_width;
  }
  __device__ std::uint8_t* pixel(int y, int x) const {
    const int row = arguments.vertical_flip ? recipe.height - 1 - y : y;
    const int column = arguments.flip ? recipe.width - 1 - x : x;
    return out + 3 * (static_cast<std::int64_t>(row) * recipe.width + column);
  }
};

__device__ void fill_weights(const Band& band, const BandMemory& memory) {
  const PhotoArguments& arguments = band.arguments;
  const int width = band.recipe.width, rows = band.end - band.begin;
  for (int i = static_cast<int>(threadIdx.x); i < width + rows; i += threads) {
    const bool column = i < width;
    const DeviceTaps taps =
        column ? DeviceTaps(band.recipe.filter, arguments.box.width, arguments.resized_width,
                            nearest(arguments.left + i, arguments.resized_width))
               : DeviceTaps(band.recipe.filter, arguments.box.height, arguments.resized_height,
                            nearest(arguments.top + band.begin + i - width, arguments.resized_height));
    const int index = column ? i : i - width;
    (column ? memory.column_first : memory.row_first)[index] = static_cast<std::int32_t>(taps.taps.first);
    (column ? memory.column_count : memory.row_count)[index] = static_cast<std::int32_t>(taps.taps.count);
    for (int k = 0; k < static_cast<int>(taps.taps.count); ++k)
      (column ? memory.column_weights[k * width + index] : memory.row_weights[index * max_taps + k]) =
          taps.weight(k);
  }
}

// Computes as many output rows at a time as the resampled input rows in shared memory allow.
__device__ void resize_band(const Band& band, const BandMemory& memory) {
  const int width = band.recipe.width, row_bytes = 3 * width, rows = band.end - band.begin;
  fill_weights(band, memory);
  __syncthreads();
  for (int y = 0; y < rows;) {
    const int from = memory.row_first[y];
    int end = y, to = from;
    for (; end < rows && memory.row_first[end] + memory.row_count[end] - from <= max_resampled_rows; ++end)
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
      std::uint8_t* const to = memory.resampled + row * row_bytes + 3 * x;
      to[0] = resized_level(r);
      to[1] = resized_level(g);
      to[2] = resized_level(b);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < (end - y) * row_bytes; i += threads) {
      const int row = y + i / row_bytes, byte = i % row_bytes;
      const std::uint8_t* in = memory.resampled + (memory.row_first[row] - from) * row_bytes + byte;
      std::int32_t sum = half;
      for (int k = 0; k < memory.row_count[row]; ++k)
        sum += memory.row_weights[row * max_taps + k] * in[k * row_bytes];
      const bool padded = band.is_padded(band.begin + row, byte / 3);
      band.pixel(band.begin + row, byte / 3)[byte % 3] =
          padded ? static_cast<std::uint8_t>(band.recipe.padding) : resized_level(sum);
    }
    __syncthreads();
    y = end;
  }
}

// Computes every pixel directly, for reductions with too many taps for shared memory.
__device__ void resize_directly(const Band& band) {
  const PhotoArguments& arguments = band.arguments;
  const int width = band.recipe.width;
  for (int i = static_cast<int>(threadIdx.x); i < (band.end - band.begin) * width; i += threads) {
    const int y = band.begin + i / width, x = i % width;
    const DeviceTaps columns(band.recipe.filter, arguments.box.width, arguments.resized_width,
                             nearest(arguments.left + x, arguments.resized_width));
    const DeviceTaps rows(band.recipe.filter, arguments.box.height, arguments.resized_height,
                          nearest(arguments.top + y, arguments.resized_height));
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
    for (int c = 0; c < 3; ++c)
      out[c] = band.is_padded(y, x) ? static_cast<std::uint8_t>(band.recipe.padding) : resized_level(sum[c]);
  }
}

__global__ void __launch_bounds__(threads)
    resize_photos(PhotoBatch batch, const PhotoArguments* all_arguments, bool use_shared) {
  extern __shared__ std::byte shared[];
  const PhotoRecipe& recipe = batch.recipe;
  const PhotoArguments& arguments = all_arguments[blockIdx.x];
  std::uint8_t* const out = batch.out + blockIdx.x * (std::int64_t{3} * recipe.height * recipe.width);
  const int begin = static_cast<int>(blockIdx.y) * band_rows;
  const int end = begin + band_rows < recipe.height ? begin + band_rows : recipe.height;
  if (arguments.box.height == 0) {  // missing: black
    for (int i = 3 * begin * recipe.width + static_cast<int>(threadIdx.x); i < 3 * end * recipe.width;
         i += threads)
      out[i] = 0;
    return;
  }
  const PhotoLocation& photo = batch.locations[batch.samples[blockIdx.x]];
  const Band band{
      recipe,
      arguments,
      BoxPixels{batch.pixels + photo.offset + 3 * (arguments.box.y * photo.width + arguments.box.x),
                3 * photo.width},
      begin,
      end,
      out};
  const bool fits =
      use_shared &&
      max_resize_taps(recipe.filter, arguments.box.width, arguments.resized_width) <= max_taps &&
      max_resize_taps(recipe.filter, arguments.box.height, arguments.resized_height) <= max_taps;
  if (fits)
    resize_band(band, BandMemory(shared, recipe.width));
  else
    resize_directly(band);
}

struct FinishMemory {
  std::uint32_t histogram[3][256];
  unsigned long long gray_sum;
  std::uint8_t tables[3][256];
};

__device__ void apply_table(const PhotoOp& op, int pixels, std::uint8_t* image, FinishMemory& memory) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 3 * 256; i += finish_threads) memory.histogram[i / 256][i % 256] = 0;
  if (thread == 0) memory.gray_sum = 0;
  __syncthreads();
  if (needs_gray_mean(op.kind)) {
    unsigned long long sum = 0;
    for (int i = thread; i < pixels; i += finish_threads)
      sum += gray_level(image[3 * i], image[3 * i + 1], image[3 * i + 2]);
    atomicAdd(&memory.gray_sum, sum);
  }
  if (needs_histogram(op.kind))
    for (int i = thread; i < 3 * pixels; i += finish_threads)
      atomicAdd(&memory.histogram[i % 3][image[i]], 1u);
  __syncthreads();
  if (thread < 3)
    make_table(op, rounded_mean(static_cast<std::int64_t>(memory.gray_sum), pixels), memory.histogram[thread],
               memory.tables[thread]);
  __syncthreads();
  for (int i = thread; i < 3 * pixels; i += finish_threads) image[i] = memory.tables[i % 3][image[i]];
}

__device__ void apply_to_pixels(const PhotoOp& op, int pixels, std::uint8_t* image) {
  for (int i = static_cast<int>(threadIdx.x); i < pixels; i += finish_threads) {
    std::uint8_t* const at = image + 3 * i;
    const PhotoPixel pixel{at[0], at[1], at[2]};
    const PhotoPixel to =
        op.kind == PhotoOpKind::hue ? rotate_hue(pixel, op.value) : saturate_pixel(pixel, op.value);
    at[0] = static_cast<std::uint8_t>(to.r);
    at[1] = static_cast<std::uint8_t>(to.g);
    at[2] = static_cast<std::uint8_t>(to.b);
  }
}

// The output byte of an operation that reads other pixels.
__device__ std::uint8_t read_other_pixels(const PhotoOp& op, int height, int width, const std::uint8_t* copy,
                                          int i) {
  const int row = 3 * width, y = i / row, x = i % row / 3;
  if (op.is_geometric()) {
    std::int32_t from_x = 0, from_y = 0;
    if (!source_pixel(op, x, y, height, width, from_x, from_y)) return 0;
    return copy[from_y * row + 3 * from_x + i % 3];
  }
  if (op.kind == PhotoOpKind::perspective)
    return perspective_level(op.coefficients, x, y, height, width, copy + i % 3);
  const std::uint8_t* const at = copy + i;
  if (y == 0 || y + 1 == height || x == 0 || x + 1 == width) return *at;
  const std::int32_t around =
      at[-row - 3] + at[-row] + at[-row + 3] + at[-3] + at[3] + at[row - 3] + at[row] + at[row + 3];
  return static_cast<std::uint8_t>(sharpen_level(*at, around, op.value));
}

// `copies` is a buffer for one copy of each image, used only by operations that read other pixels.
__global__ void __launch_bounds__(finish_threads)
    finish_photos(PhotoRecipe recipe, const PhotoArguments* all_arguments, std::uint8_t* images,
                  std::uint8_t* copies) {
  __shared__ FinishMemory memory;
  const int pixels = recipe.height * recipe.width, thread = static_cast<int>(threadIdx.x);
  std::uint8_t* const image = images + blockIdx.x * (std::int64_t{3} * pixels);
  const PhotoArguments& arguments = all_arguments[blockIdx.x];
  for (int step = 0; step < arguments.op_count; ++step) {
    const PhotoOp& op = arguments.ops[step];
    if (uses_table(op.kind)) {
      apply_table(op, pixels, image, memory);
    } else if (op.kind == PhotoOpKind::saturation || op.kind == PhotoOpKind::hue) {
      apply_to_pixels(op, pixels, image);
    } else if (op.kind != PhotoOpKind::identity) {
      std::uint8_t* const copy = copies + blockIdx.x * (std::int64_t{3} * pixels);
      for (int i = thread; i < 3 * pixels; i += finish_threads) copy[i] = image[i];
      __syncthreads();
      for (int i = thread; i < 3 * pixels; i += finish_threads)
        image[i] = read_other_pixels(op, recipe.height, recipe.width, copy, i);
    }
    __syncthreads();
  }
  const PixelBox& box = arguments.erase;
  const int bytes = static_cast<int>(3 * box.width * box.height), row = static_cast<int>(3 * box.width);
  for (int i = thread; i < bytes; i += finish_threads)
    image[3 * ((box.y + i / row) * recipe.width + box.x) + i % row] = recipe.erase.color[i % 3];
}

// Raises the shared memory limit of resize_photos; false if the device has less.
bool allow_shared(std::int64_t bytes) {
  int device = 0, max_bytes = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&max_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  if (bytes > max_bytes) return false;
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
  const bool copies = recipe.rand_augment.count > 0 || recipe.trivial_augment || recipe.rotation > 0 ||
                      !recipe.perspective.empty();
  const bool finish = copies || !recipe.jitter.empty() || recipe.erase.probability > 0;
  const std::int64_t shared = BandMemory::bytes(recipe.width);
  const bool use_shared = allow_shared(shared);
  // If memory for copies is needed, the batch is processed in chunks to bound it.
  const std::int64_t chunk =
      std::min<std::int64_t>(batch.count, copies ? std::max<std::int64_t>(max_scratch / bytes, 1) : 1 << 20);
  const Buffer argument_memory(static_cast<std::size_t>(chunk) * sizeof(PhotoArguments), stream);
  const Buffer copy_memory(static_cast<std::size_t>(copies ? chunk * bytes : 0), stream);
  auto* const arguments = reinterpret_cast<PhotoArguments*>(argument_memory.data());
  for (std::int64_t first = 0; first < batch.count; first += chunk) {
    PhotoBatch part = batch;
    part.samples += first;
    if (part.keys) part.keys += first;
    part.out += first * bytes;
    part.count = std::min(chunk, batch.count - first);
    const auto count = static_cast<unsigned>(part.count);
    sample_photos<<<(count + 63) / 64, 64, 0, cuda_stream(stream)>>>(part, arguments);
    check_launch("photo (arguments)");
    const dim3 blocks(count, static_cast<unsigned>((recipe.height + band_rows - 1) / band_rows));
    resize_photos<<<blocks, threads, use_shared ? static_cast<std::size_t>(shared) : 0,
                    cuda_stream(stream)>>>(part, arguments, use_shared);
    check_launch("photo (resize)");
    if (!finish) continue;
    finish_photos<<<count, finish_threads, 0, cuda_stream(stream)>>>(
        recipe, arguments, part.out, reinterpret_cast<std::uint8_t*>(copy_memory.data()));
    check_launch("photo (colors)");
  }
}

}  // namespace tandem::detail
