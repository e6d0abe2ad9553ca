// The common pass on small grey images: a linear rotation, then moves, then noise or none. A block takes
// several images. It draws their arguments, packs each pixel with its three neighbours into a word of shared
// memory, computes where every row begins, and then a thread computes eight consecutive pixels at a time: as
// many as one block of random words serves, at one load, two dot products and some forty instructions each.
#pragma once

#include <algorithm>

#include "tandem/augment/augment_pass.cuh"
#include "tandem/device/cuda.h"

namespace tandem {

constexpr int small_threads = 128;
constexpr int strip_rows = 7;                   // 28 are four of them
constexpr int small_blocks = 7;                 // of a multiprocessor
constexpr int small_memory = 32320;             // bytes of a block, such that so many fit
constexpr int small_memory_of_one = 48 * 1024;  // what a single larger image may take

// n / divisor by one multiplication, for divisors of 2 and more and n · divisor < 2³².
struct SmallDivisor {
  std::uint32_t divisor, inverse;

  explicit SmallDivisor(int by)
      : divisor(static_cast<std::uint32_t>(by)), inverse(0xffffffffu / static_cast<std::uint32_t>(by) + 1) {}
  __device__ std::uint32_t quotient(std::uint32_t n) const { return __umulhi(n, inverse); }
};

// What was drawn for an image, but for its moves.
struct SmallDraw {
  std::uint32_t xx, yx, x0, y0;  // of the RotateMap, whose xy is −yx and yy is xx
  std::int32_t noise;
  std::uint32_t sample;
};

// An output row: where its first pixel is read, and which of its columns are.
struct alignas(16) RowStart {
  std::uint32_t column, row;
  std::int32_t begin, end;
};

// philox() with a key whose rounds were computed beforehand: they are the same for all images.
struct KeyRounds {
  std::uint32_t first[10], second[10];

  explicit KeyRounds(std::uint64_t key) {
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

struct SmallPass {
  PassOnDevice pass;
  int images;                                  // of a block
  SmallDivisor groups, words, height, strips;  // of 8 pixels in an image, of 4 in a row, rows, strips of them
  KeyRounds noise_key;

  __host__ __device__ int moves() const { return pass.pass.moves_end - pass.pass.rotation - 1; }
  // An odd number of words a row: threads that are 8 pixels apart read different banks. The last word of an
  // image's first row is 0 and stands for what lies outside.
  __host__ __device__ int pitch() const { return pass.size.width + 1; }
  __host__ __device__ int image_memory() const {
    return pass.size.height * (static_cast<int>(sizeof(RowStart)) + 4 * pitch()) +
           static_cast<int>(sizeof(SmallDraw)) + moves() * static_cast<int>(sizeof(DrawnStep));
  }
};

// Step by step: all images draw the same kind side by side.
__device__ inline void draw_small(const SmallPass& work, std::int64_t first, int images, SmallDraw* draws,
                                  DrawnStep* moves) {
  const AugmentPass& pass = work.pass.pass;
  for (int t = threadIdx.x; t < images * (pass.end - pass.rotation); t += small_threads) {
    const int image = t % images, step = pass.rotation + t / images;
    const DrawKey key = work.pass.key(first + image);
    const DrawnStep drawn = work.pass.draw(key, step);
    SmallDraw& draw = draws[image];
    if (step == pass.rotation) {
      draw.xx = static_cast<std::uint32_t>(drawn.map.xx);
      draw.yx = static_cast<std::uint32_t>(drawn.map.yx);
      draw.x0 = static_cast<std::uint32_t>(drawn.map.x0);
      draw.y0 = static_cast<std::uint32_t>(drawn.map.y0);
      draw.sample = key.sample;
    } else if (step < pass.moves_end) {
      moves[image * work.moves() + step - pass.rotation - 1] = drawn;
    } else {
      draw.noise = drawn.noise;
    }
  }
}

// Packs every pixel p as {p, right of p, below p, below and right of p}; beyond the border is 0. A thread
// takes four columns and walks down a few rows, so that each is read once, all at the same time.
__device__ inline void pack_small(const SmallPass& work, std::int64_t first, int images,
                                  std::uint32_t* quads) {
  const std::uint32_t row_words = work.words.divisor, strips = work.strips.divisor;
  const std::uint32_t height = work.height.divisor, pitch = work.pitch();
  for (std::uint32_t image = threadIdx.x; image < images; image += small_threads)
    quads[(image * height + 1) * pitch - 1] = 0;
  for (std::uint32_t t = threadIdx.x; t < images * strips; t += small_threads) {
    const std::uint32_t image = work.strips.quotient(t), strip = t - image * strips;
    const std::uint32_t down = work.words.quotient(strip), x = strip - down * row_words;
    const std::uint32_t y = strip_rows * down;
    const auto* from =
        reinterpret_cast<const std::uint32_t*>(work.pass.source(first + image)) + y * row_words + x;
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

__device__ inline void start_rows(const SmallPass& work, int images, const SmallDraw* draws,
                                  const DrawnStep* moves, RowStart* rows) {
  const std::uint32_t height = work.height.divisor;
  for (std::uint32_t t = threadIdx.x; t < images * height; t += small_threads) {
    const std::uint32_t image = work.height.quotient(t);
    const RowMove move = row_move(moves + image * work.moves(), work.moves(), work.pass.size,
                                  static_cast<std::int32_t>(t - image * height));
    const SmallDraw& draw = draws[image];
    const auto x = static_cast<std::uint32_t>(move.offset), y = static_cast<std::uint32_t>(move.row);
    rows[t] = {.column = x * draw.xx - y * draw.yx + draw.x0,
               .row = x * draw.yx + y * draw.xx + draw.y0,
               .begin = move.begin,
               .end = move.end};
  }
}

// The same as between_levels(): the products of all four weights are whole numbers.
__device__ inline std::uint32_t between_quad(std::uint32_t quad, std::uint32_t right, std::uint32_t down) {
  const std::uint32_t across = right * 65535u + (1u << weight_bits);  // {2048 − right, right}
  const std::uint32_t half = 1u << (weight_bits - 1);
  const std::uint32_t above = __dp2a_lo(across, quad, half), below = __dp2a_hi(across, quad, half);
  return ((above << weight_bits) + (below - above) * down) >> (2 * weight_bits);
}

// Four values as bytes, each set to the nearest of 0 … 255.
__device__ inline std::uint32_t saturated_bytes(const std::int32_t* values) {
  std::uint32_t high, low;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(values[3]), "r"(values[2]), "r"(0));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(low) : "r"(values[1]), "r"(values[0]), "r"(high));
  return low;
}

// noisy_level() for eight levels, but for the clipping. The draw's two terms and the rounding are one product
// and one sum, modulo 2³².
__device__ inline void add_small_noise(const Words4& block, std::int32_t noise, std::int32_t* levels) {
  const std::uint32_t twice = 2 * static_cast<std::uint32_t>(noise);
  const std::uint32_t least = (1u << 22) - 65535u * static_cast<std::uint32_t>(noise);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto added = static_cast<std::int32_t>(noise_bits(block, i) * twice + least) >> 8;
    levels[i] = ((levels[i] << 15) + added) >> 15;
  }
}

template <bool noisy>
__global__ void __launch_bounds__(small_threads, small_blocks)
    augment_small(const __grid_constant__ SmallPass work) {
  extern __shared__ RowStart rows[];
  const ImageSize& size = work.pass.size;
  const std::uint32_t height = work.height.divisor, pitch = work.pitch();
  const std::int64_t first = std::int64_t{blockIdx.x} * work.images;
  const int images = static_cast<int>(min(std::int64_t{work.images}, work.pass.count - first));
  auto* const draws = reinterpret_cast<SmallDraw*>(rows + work.images * height);
  auto* const moves = reinterpret_cast<DrawnStep*>(draws + work.images);
  auto* const quads = reinterpret_cast<std::uint32_t*>(moves + work.images * work.moves());

  draw_small(work, first, images, draws, moves);
  pack_small(work, first, images, quads);
  __syncthreads();
  start_rows(work, images, draws, moves, rows);
  __syncthreads();

  const int fraction = coordinate_fraction(size);
  const std::uint32_t last_column = static_cast<std::uint32_t>(size.width - 1) << fraction;
  const std::uint32_t last_row = static_cast<std::uint32_t>(size.height - 1) << fraction;
  const std::uint32_t groups = work.groups.divisor, row_words = work.words.divisor;
  auto* const out = reinterpret_cast<uint2*>(work.pass.out + first * size.bytes());
  for (std::uint32_t t = threadIdx.x; t < images * groups; t += small_threads) {
    const std::uint32_t image = work.groups.quotient(t), group = t - image * groups;
    const SmallDraw& draw = draws[image];
    const std::uint32_t xx = draw.xx, yx = draw.yx;
    const std::uint32_t* const source = quads + image * height * pitch;
    std::uint32_t y = work.words.quotient(2 * group), word = 2 * group - y * row_words;
    std::int32_t levels[8];
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // four pixels each, which lie in one row
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
        levels[4 * half + i] = static_cast<std::int32_t>(between_quad(
            quad, column >> (fraction - weight_bits) & weights, row >> (fraction - weight_bits) & weights));
      }
      if (++word == row_words) {
        word = 0;
        ++y;
      }
    }
    if constexpr (noisy) {
      const auto operation = static_cast<std::uint32_t>(work.pass.pass.moves_end);
      const Words4 block = work.noise_key.philox(1 + group, operation, draw.sample, work.pass.epoch);
      add_small_noise(block, draw.noise, levels);
    }
    out[t] = make_uint2(saturated_bytes(levels), saturated_bytes(levels + 4));
  }
}

// False when the pass is none of this kind; then nothing was done.
inline bool augment_small_images(const PassOnDevice& pass, StreamView stream) {
  const AugmentPass& steps = pass.pass;
  const ImageSize& size = pass.size;
  const auto at = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
  const bool fits = steps.rotates() && steps.begin == steps.rotation && steps.end - steps.moves_end <= 1 &&
                    pass.recipe.steps[steps.rotation].interpolation == Interpolation::linear &&
                    size.channels == 1 && size.width % 4 == 0 && size.width >= 8 &&
                    size.width <= small_side && size.height >= 2 && size.height <= small_side &&
                    size.bytes() % 8 == 0 && at(pass.in) % 4 == 0 && at(pass.out) % 8 == 0;
  if (!fits) return false;
  SmallPass work{.pass = pass,
                 .images = 1,
                 .groups = SmallDivisor(size.height * size.width / 8),
                 .words = SmallDivisor(size.width / 4),
                 .height = SmallDivisor(size.height),
                 .strips = SmallDivisor((size.height + strip_rows - 1) / strip_rows * (size.width / 4)),
                 .noise_key = KeyRounds(pass.seed)};
  if (work.image_memory() > small_memory_of_one) return false;
  // A small batch is spread over the multiprocessors.
  const std::int64_t share = pass.count / multiprocessor_count(stream.device);
  work.images = static_cast<int>(
      std::clamp<std::int64_t>(small_memory / work.image_memory(), 1, std::max<std::int64_t>(share, 1)));
  const auto kernel = steps.end > steps.moves_end ? augment_small<true> : augment_small<false>;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared),
             "cudaFuncSetAttribute");
  const auto blocks = static_cast<unsigned>((pass.count + work.images - 1) / work.images);
  kernel<<<blocks, small_threads, work.images * work.image_memory(), cuda_stream(stream)>>>(work);
  check_launch("augment (small images)");
  return true;
}

}  // namespace tandem
