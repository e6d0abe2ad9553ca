// Register-tiled matrix products for a perceptron's layers on the CPU. Matrices are stored in blocks of 16
// columns, one cache line wide: activations as [block][row][16], weights as [block of outputs][input][16], so
// that every inner loop reads memory sequentially. Each element is summed in one fixed order, so the result
// does not depend on how the work is divided between threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/simd.h"
#include "tandem/optim/update_rule.h"

namespace tandem::detail {

inline constexpr std::int64_t lanes = 16;  // columns per block

constexpr std::int64_t blocks_of(std::int64_t columns) {
  return (columns + lanes - 1) / lanes;
}
constexpr std::int64_t padded(std::int64_t columns) {
  return blocks_of(columns) * lanes;
}

// Rows per tile of accumulators: as many as fit in the registers.
template <std::size_t bytes>
inline constexpr int tile_rows = bytes == 64 ? 16 : 4;

// A tile of rows × 16 accumulators in registers.
template <std::size_t bytes>
struct Tile {
  using V = Vector<float, bytes>;
  static constexpr int rows = tile_rows<bytes>;
  static constexpr int vectors = static_cast<int>(lanes * sizeof(float) / bytes);
  static constexpr std::int64_t width = bytes / sizeof(float);
  V sum[rows][vectors];

  [[gnu::always_inline]] void load(const float* from) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = *reinterpret_cast<const V*>(from + r * lanes + v * width);
  }
  [[gnu::always_inline]] void store(float* to) const {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) *reinterpret_cast<V*>(to + r * lanes + v * width) = sum[r][v];
  }

  // sum[r] += Σ over k of a(r, k) · b[k], where b[k] is a row of 16 and a(r, k) = a[16 r + k]. Forward and
  // backward products.
  [[gnu::always_inline]] void add_rows(const float* a, const float* b) {
    if constexpr (bytes == 16) {  // on Arm, multiply-add takes a single lane of a register as operand
#pragma GCC unroll 4
      for (std::int64_t k = 0; k < lanes; k += width) {
        V x[rows];
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) x[r] = *reinterpret_cast<const V*>(a + r * lanes + k);
#pragma GCC unroll 4
        for (int lane = 0; lane < width; ++lane) add_products<4>(x, lane, b + (k + lane) * lanes);
      }
    } else {
#pragma GCC unroll 2
      for (int k = 0; k < lanes; ++k) {
        V w[vectors];
        load_row(w, b + k * lanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sum[r][v] += w[v] * a[r * lanes + k];
      }
    }
  }

  // The same with a(r, k) = a[16 k + r]: gradients of weights, where k runs over the rows of the batch.
  [[gnu::always_inline]] void add_columns(const float* a, const float* b, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k, a += lanes, b += lanes) {
      V w[vectors];
      load_row(w, b);
      if constexpr (bytes == 16) {
        const V x = *reinterpret_cast<const V*>(a);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sum[r][v] += w[v] * x[r];
      } else {
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sum[r][v] += w[v] * a[r];
      }
    }
  }

 private:
  [[gnu::always_inline]] static void load_row(V* w, const float* from) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) w[v] = *reinterpret_cast<const V*>(from + v * width);
  }
  template <int count>
  [[gnu::always_inline]] void add_products(const V* x, int lane, const float* b) {
    V w[vectors];
    load_row(w, b);
#pragma GCC unroll 4
    for (int r = 0; r < count; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] += w[v] * x[r][lane];
  }
};

// One block of outputs for rows first … last − 1 (multiples of 16): out = in · weights, without bias. `in` is
// [input block][stride][16], `weights` [input][16]. Inputs are processed in pieces that fit in the L1 cache.
template <std::size_t bytes>
[[gnu::always_inline]] inline void multiply_block(const float* in, std::int64_t input_blocks,
                                                  std::int64_t stride, const float* weights, float* out,
                                                  std::int64_t first, std::int64_t last) {
  constexpr std::int64_t piece = 32;  // blocks of inputs: 32 KB of weights
  for (std::int64_t begin = 0; begin < input_blocks; begin += piece) {
    const std::int64_t end = begin + piece < input_blocks ? begin + piece : input_blocks;
    for (std::int64_t row = first; row < last; row += tile_rows<bytes>) {
      Tile<bytes> tile{};
      if (begin > 0) tile.load(out + row * lanes);
      for (std::int64_t block = begin; block < end; ++block)
        tile.add_rows(in + (block * stride + row) * lanes, weights + block * lanes * lanes);
      tile.store(out + row * lanes);
    }
  }
}

// The gradient of a block of 16 inputs × 16 outputs of a weight matrix: sums over `count` rows. `in` and
// `gradient` are [row][16].
template <std::size_t bytes>
[[gnu::always_inline]] inline void gradient_block(const float* in, const float* gradient, std::int64_t count,
                                                  float* sums) {
  constexpr std::int64_t piece = 256;  // rows: 32 KB of inputs and gradients
#pragma GCC unroll 1
  for (int t = 0; t < lanes; t += tile_rows<bytes>) {
    Tile<bytes> tile{};
    tile.add_columns(in + t, gradient, count < piece ? count : piece);
    tile.store(sums + t * lanes);
  }
  for (std::int64_t begin = piece; begin < count; begin += piece) {
#pragma GCC unroll 1
    for (int t = 0; t < lanes; t += tile_rows<bytes>) {
      Tile<bytes> tile;
      tile.load(sums + t * lanes);
      tile.add_columns(in + begin * lanes + t, gradient + begin * lanes,
                       begin + piece < count ? piece : count - begin);
      tile.store(sums + t * lanes);
    }
  }
}

// Updates a block of 16 × 16 weights and its optimizer states with the sums of its gradient.
template <std::size_t bytes, class Rule>
[[gnu::always_inline]] inline void update_block(const float* sums, float* weight, float* first, float* second,
                                                Rule rule,
                                                const StepHyperparameters<float>& hyperparameters) {
  using V = Vector<float, bytes>;
  constexpr std::int64_t width = bytes / sizeof(float);
  // Not V, which may be unaligned: Clang treats a reference to it as one to an aligned vector.
  typedef float Aligned __attribute__((vector_size(bytes)));
  for (std::int64_t i = 0; i < lanes * lanes; i += width) {
    Aligned w = *reinterpret_cast<const V*>(weight + i), a{}, b{};
    if constexpr (Rule::states > 0) a = *reinterpret_cast<const V*>(first + i);
    if constexpr (Rule::states > 1) b = *reinterpret_cast<const V*>(second + i);
    const Aligned gradient_sum = *reinterpret_cast<const V*>(sums + i);
    rule(w, gradient_sum, a, b, hyperparameters);
    *reinterpret_cast<V*>(weight + i) = w;
    if constexpr (Rule::states > 0) *reinterpret_cast<V*>(first + i) = a;
    if constexpr (Rule::states > 1) *reinterpret_cast<V*>(second + i) = b;
  }
}

}  // namespace tandem::detail
