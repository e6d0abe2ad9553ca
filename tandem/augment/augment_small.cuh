// The common pass on small gray images: a linear interpolation (rotate, zoom or crop), then moves, then at
// most one noise step. One block processes several images. It samples their arguments, packs each pixel with
// its three neighbors into a word of shared memory and computes where every row begins. Then each thread
// computes eight consecutive pixels at a time, the number that one block of random words covers, with one
// load, two dot products and about forty instructions per pixel.
#pragma once

#include <algorithm>

#include "tandem/augment/augment_pass.cuh"
#include "tandem/device/cuda.h"

namespace tandem::detail {

constexpr int small_threads = 128;
constexpr int strip_rows = 7;                     // 28 rows are four strips
constexpr int small_blocks = 7;                   // per multiprocessor
constexpr int small_block_bytes = 32320;          // shared memory per block, so that small_blocks fit
constexpr int max_small_image_bytes = 48 * 1024;  // shared memory of a block with a single larger image

// n / divisor by one multiplication, for divisors of 2 and more and n · divisor < 2³².
struct SmallDivisor {
  std::uint32_t divisor, inverse;

  explicit SmallDivisor(int by)
      : divisor(static_cast<std::uint32_t>(by)), inverse(0xffffffffu / static_cast<std::uint32_t>(by) + 1) {}
  __device__ std::uint32_t quotient(std::uint32_t n) const { return __umulhi(n, inverse); }
};

// The arguments of one image, without its moves.
struct SmallArguments {
  std::uint32_t xx, yx, x0, y0;  // of the SourceMap; its xy is −yx and its yy is xx
  std::int32_t noise;
  std::uint32_t sample;
};

// An output row: the source coordinates of its first pixel, and the columns that have a source.
struct alignas(16) RowStart {
  std::uint32_t column, row;
  std::int32_t begin, end;
};

// philox() with a precomputed key schedule, which is the same for all images.
struct PhiloxSchedule {
  std::uint32_t first[10], second[10];

  explicit PhiloxSchedule(std::uint64_t key) {
    for (std::uint32_t i = 0; i < 10; ++i) {
      first[i] = static_cast<std::uint32_t>(key) + i * 0x9E3779B9u;
      second[i] = static_cast<std::uint32_t>(key >> 32) + i * 0xBB67AE85u;
    }
  }
  __device__ Words4 philox(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3) const {
#pragma unroll
    for (int i = 0; i < 10; ++i) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * c0;
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ first[i];
      c1 = static_cast<std::uint32_t>(product1);
      c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ second[i];
      c3 = static_cast<std::uint32_t>(product0);
    }
    return {{c0, c1, c2, c3}};
  }
};

struct SmallPassParams {
  CudaPassParams pass;
  int images;           // per block
  SmallDivisor groups;  // of 8 pixels per image
  SmallDivisor words;   // of 4 pixels per row
  SmallDivisor height;  // rows per image
  SmallDivisor strips;  // of strip_rows × 4 pixels per image
  PhiloxSchedule noise_key;

  __host__ __device__ int moves() const { return pass.pass.moves_end - pass.pass.resample - 1; }
  // An odd number of words per row, so that threads 8 pixels apart read different banks. The last word of an
  // image's first row is 0 and is read for everything outside the image.
  __host__ __device__ int pitch() const { return pass.size.width + 1; }
  __host__ __device__ int image_bytes() const {
    return pass.size.height * (static_cast<int>(sizeof(RowStart)) + 4 * pitch()) +
           static_cast<int>(sizeof(SmallArguments)) + moves() * static_cast<int>(sizeof(SampledStep));
  }
};

// Adjacent threads sample the same step of different images, so that a warp does not diverge.
__device__ inline void sample_small_arguments(const SmallPassParams& params, std::int64_t first, int images,
                                              SmallArguments* arguments, SampledStep* moves) {
  const FusedPass& pass = params.pass.pass;
  for (int t = threadIdx.x; t < images * (pass.end - pass.resample); t += small_threads) {
    const int image = t % images, step = pass.resample + t / images;
    const RandomKey key = params.pass.key(first + image);
    const SampledStep sampled = params.pass.sample(key, step);
    SmallArguments& own = arguments[image];
    if (step == pass.resample) {
      own.xx = static_cast<std::uint32_t>(sampled.map.xx);
      own.yx = static_cast<std::uint32_t>(sampled.map.yx);
      own.x0 = static_cast<std::uint32_t>(sampled.map.x0);
      own.y0 = static_cast<std::uint32_t>(sampled.map.y0);
      own.sample = key.sample;
    } else if (step < pass.moves_end) {
      moves[image * params.moves() + step - pass.resample - 1] = sampled;
    } else {
      own.noise = sampled.noise;
    }
  }
}

// Packs every pixel p as {p, right of p, below p, below and right of p}; beyond the border is 0. Each thread
// processes four columns of a few rows, so that each word is read once and all loads are in flight together.
__device__ inline void pack_small(const SmallPassParams& params, std::int64_t first, int images,
                                  std::uint32_t* quads) {
  const std::uint32_t row_words = params.words.divisor, strips = params.strips.divisor;
  const std::uint32_t height = params.height.divisor, pitch = params.pitch();
  for (std::uint32_t image = threadIdx.x; image < images; image += small_threads)
    quads[(image * height + 1) * pitch - 1] = 0;
  for (std::uint32_t t = threadIdx.x; t < images * strips; t += small_threads) {
    const std::uint32_t image = params.strips.quotient(t), strip = t - image * strips;
    const std::uint32_t down = params.words.quotient(strip), x = strip - down * row_words;
    const std::uint32_t y = strip_rows * down;
    const auto* from =
        reinterpret_cast<const std::uint32_t*>(params.pass.source(first + image)) + y * row_words + x;
    std::uint32_t left[strip_rows + 1], right[strip_rows + 1];
#pragma unroll
    for (int i = 0; i <= strip_rows; ++i, from += row_words) {
      left[i] = y + i < height ? from[0] : 0;
      right[i] = y + i < height && x + 1 < row_words ? from[1] : 0;
    }
    std::uint32_t* to = quads + (image * height + y) * pitch + 4 * x;
#pragma unroll
    for (int i = 0; i < strip_rows; ++i, to += pitch) {
      if (y + i >= height) break;
      const std::uint32_t a = left[i], b = left[i + 1];
      to[0] = __byte_perm(a, b, 0x5410);
      to[1] = __byte_perm(a, b, 0x6521);
      to[2] = __byte_perm(a, b, 0x7632);
      to[3] = __byte_perm(__byte_perm(a, right[i], 0x0043), __byte_perm(b, right[i + 1], 0x0043), 0x5410);
    }
  }
}

__device__ inline void start_rows(const SmallPassParams& params, int images, const SmallArguments* arguments,
                                  const SampledStep* moves, RowStart* rows) {
  const std::uint32_t height = params.height.divisor;
  for (std::uint32_t t = threadIdx.x; t < images * height; t += small_threads) {
    const std::uint32_t image = params.height.quotient(t);
    const RowMove move = row_move<false>(moves + image * params.moves(), params.moves(), params.pass.size,
                                         static_cast<std::int32_t>(t - image * height));
    const SmallArguments& own = arguments[image];
    const auto x = static_cast<std::uint32_t>(move.offset), y = static_cast<std::uint32_t>(move.row);
    rows[t] = {.column = x * own.xx - y * own.yx + own.x0,
               .row = x * own.yx + y * own.xx + own.y0,
               .begin = move.begin,
               .end = move.end};
  }
}

// Gives the same result as interpolate_levels(), because the products of all four weights are integers.
__device__ inline std::uint32_t interpolate_quad(std::uint32_t quad, std::uint32_t right,
                                                 std::uint32_t down) {
  const std::uint32_t across = right * 65535u + (1u << weight_bits);  // {2048 − right, right}
  const std::uint32_t half = 1u << (weight_bits - 1);
  const std::uint32_t above = __dp2a_lo(across, quad, half), below = __dp2a_hi(across, quad, half);
  return ((above << weight_bits) + (below - above) * down) >> (2 * weight_bits);
}

// Packs four values into bytes, each clipped to 0 … 255.
__device__ inline std::uint32_t saturated_bytes(const std::int32_t* values) {
  std::uint32_t high, low;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(values[3]), "r"(values[2]), "r"(0));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(low) : "r"(values[1]), "r"(values[0]), "r"(high));
  return low;
}

// noisy_level() for eight levels without the clipping. The noise and the rounding are combined to one product
// and one sum modulo 2³².
__device__ inline void add_small_noise(const Words4& block, std::int32_t noise, std::int32_t* levels) {
  const std::uint32_t factor = 2 * static_cast<std::uint32_t>(noise);
  const std::uint32_t start = (1u << 22) - 65535u * static_cast<std::uint32_t>(noise);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto added = static_cast<std::int32_t>(noise_bits(block, i) * factor + start) >> 8;
    levels[i] = ((levels[i] << 15) + added) >> 15;
  }
}

template <bool noisy>
__global__ void __launch_bounds__(small_threads, small_blocks)
    augment_small(const __grid_constant__ SmallPassParams params) {
  extern __shared__ RowStart rows[];
  const ImageSize& size = params.pass.size;
  const std::uint32_t height = params.height.divisor, pitch = params.pitch();
  const std::int64_t first = std::int64_t{blockIdx.x} * params.images;
  const int images = static_cast<int>(min(std::int64_t{params.images}, params.pass.count - first));
  auto* const arguments = reinterpret_cast<SmallArguments*>(rows + params.images * height);
  auto* const moves = reinterpret_cast<SampledStep*>(arguments + params.images);
  auto* const quads = reinterpret_cast<std::uint32_t*>(moves + params.images * params.moves());

  sample_small_arguments(params, first, images, arguments, moves);
  pack_small(params, first, images, quads);
  __syncthreads();
  start_rows(params, images, arguments, moves, rows);
  __syncthreads();

  const int fraction = coordinate_fraction(size);
  const std::uint32_t last_column = static_cast<std::uint32_t>(size.width - 1) << fraction;
  const std::uint32_t last_row = static_cast<std::uint32_t>(size.height - 1) << fraction;
  const std::uint32_t groups = params.groups.divisor, row_words = params.words.divisor;
  auto* const out = reinterpret_cast<uint2*>(params.pass.out + first * size.bytes());
  for (std::uint32_t t = threadIdx.x; t < images * groups; t += small_threads) {
    const std::uint32_t image = params.groups.quotient(t), group = t - image * groups;
    const SmallArguments& own = arguments[image];
    const std::uint32_t xx = own.xx, yx = own.yx;
    const std::uint32_t* const source = quads + image * height * pitch;
    std::uint32_t y = params.words.quotient(2 * group), word = 2 * group - y * row_words;
    std::int32_t levels[8];
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // four pixels each, all in one row
      const RowStart start = rows[image * height + y];
      const std::int32_t x = static_cast<std::int32_t>(4 * word);
      const std::uint32_t first_column = start.column + x * xx, first_row = start.row + x * yx;
      const std::int32_t begin = start.begin - x, end = start.end - x;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t column = first_column + i * xx, row = first_row + i * yx;
        const bool inside = column <= last_column && row <= last_row && i >= begin && i < end;
        const std::uint32_t at = (row >> fraction) * pitch + (column >> fraction);
        const std::uint32_t quad = source[inside ? at : pitch - 1];
        constexpr std::uint32_t weights = (1u << weight_bits) - 1;
        levels[4 * half + i] = static_cast<std::int32_t>(interpolate_quad(
            quad, column >> (fraction - weight_bits) & weights, row >> (fraction - weight_bits) & weights));
      }
      if (++word == row_words) {
        word = 0;
        ++y;
      }
    }
    if constexpr (noisy) {
      const auto operation = static_cast<std::uint32_t>(params.pass.pass.moves_end);
      const Words4 block = params.noise_key.philox(1 + group, operation, own.sample, params.pass.epoch);
      add_small_noise(block, own.noise, levels);
    }
    out[t] = make_uint2(saturated_bytes(levels), saturated_bytes(levels + 4));
  }
}

// Returns false, without launching anything, if this kernel is not applicable to the pass.
inline bool augment_small_images(const CudaPassParams& pass, StreamView stream) {
  const FusedPass& steps = pass.pass;
  const ImageSize& size = pass.size;
  const auto at = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
  const bool is_applicable =
      steps.resamples() && steps.begin == steps.resample && steps.end - steps.moves_end <= 1 &&
      is_linear(pass.recipe.steps[steps.resample]) && size.channels == 1 && size.width % 4 == 0 &&
      size.width >= 8 && size.width <= max_small_side && size.height >= 2 && size.height <= max_small_side &&
      size.bytes() % 8 == 0 && at(pass.in) % 4 == 0 && at(pass.out) % 8 == 0;
  if (!is_applicable) return false;
  SmallPassParams params{
      .pass = pass,
      .images = 1,
      .groups = SmallDivisor(size.height * size.width / 8),
      .words = SmallDivisor(size.width / 4),
      .height = SmallDivisor(size.height),
      .strips = SmallDivisor((size.height + strip_rows - 1) / strip_rows * (size.width / 4)),
      .noise_key = PhiloxSchedule(pass.seed)};
  if (params.image_bytes() > max_small_image_bytes) return false;
  // A small batch is distributed over all multiprocessors.
  const std::int64_t per_multiprocessor = pass.count / multiprocessor_count(stream.device);
  params.images = static_cast<int>(std::clamp<std::int64_t>(small_block_bytes / params.image_bytes(), 1,
                                                            std::max<std::int64_t>(per_multiprocessor, 1)));
  const auto kernel = steps.end > steps.moves_end ? augment_small<true> : augment_small<false>;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared),
             "cudaFuncSetAttribute");
  const auto blocks = static_cast<unsigned>((pass.count + params.images - 1) / params.images);
  kernel<<<blocks, small_threads, params.images * params.image_bytes(), cuda_stream(stream)>>>(params);
  check_launch("augment (small images)");
  return true;
}

}  // namespace tandem::detail
