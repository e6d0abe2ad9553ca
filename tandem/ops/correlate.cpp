#include "tandem/ops/correlate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"
#include "tandem/ops/correlate_kernel.h"
#include "tandem/ops/version_kernel.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

// The tuned version computes tiles of a few output rows by a few SIMD vectors in registers. Each vector
// loaded from an input row is used for every output row it contributes to, so there are far fewer loads than
// multiply-adds.
constexpr int small_tile_rows = 2;  // for kernels of up to three rows
constexpr int large_tile_rows = 4;  // for taller kernels

template <std::size_t bytes, int tile_rows>
constexpr int tile_vectors = tile_rows == small_tile_rows ? 6
                             : bytes == 32                ? 2
                                                          : 4;  // AVX2 has half as many registers as AVX-512

// Small kernels on NEON load whole vectors once and shift them, instead of loading again for every kernel
// column. Larger kernels have no registers left for that, and on x86 unaligned loads are cheap and shifts are
// expensive.
template <std::size_t bytes, int tile_rows, int known_width>
constexpr bool uses_shifts = bytes == 16 && tile_rows == small_tile_rows&& known_width > 0;

// The sums of a tile.
template <class T, std::size_t bytes, int rows, int vectors>
struct Sums {
  Vector<T, bytes> row[rows][vectors];
};

// Lanes `count`, `count` + 1, … of the concatenation of two vectors.
template <class T, std::size_t bytes>
[[gnu::always_inline]] inline Vector<T, bytes> shift_lanes(Vector<T, bytes> a, Vector<T, bytes> b,
                                                           int count) {
  constexpr int lanes = bytes / sizeof(T);
  if constexpr (lanes == 2) return count == 1 ? __builtin_shufflevector(a, b, 1, 2) : a;
  if constexpr (lanes == 4) {
    if (count == 1) return __builtin_shufflevector(a, b, 1, 2, 3, 4);
    if (count == 2) return __builtin_shufflevector(a, b, 2, 3, 4, 5);
    if (count == 3) return __builtin_shufflevector(a, b, 3, 4, 5, 6);
  }
  return a;
}

// Adds the contribution of one input row to rows [first, last) of a tile. `pixels` points to the input pixel
// under the first kernel column, `weights` to the kernel row that applies to the first row of the tile.
template <int first, int last, int known_width, bool shifting, class T, std::size_t bytes, int rows,
          int vectors>
[[gnu::always_inline]] inline void add_row(Sums<T, bytes, rows, vectors>& sum, const T* pixels,
                                           const T* weights, std::int64_t width) {
  using V = Vector<T, bytes>;
  constexpr int lanes = bytes / sizeof(T);
  const std::int64_t kernel_width = known_width > 0 ? known_width : width;
  if constexpr (shifting) {
    constexpr int extra_vectors = (known_width - 1 + lanes - 1) / lanes;
    V piece[vectors + extra_vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors + extra_vectors; ++v)
      piece[v] = *reinterpret_cast<const V*>(pixels + v * lanes);
#pragma GCC unroll 8
    for (int j = 0; j < known_width; ++j)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const int index = v + j / lanes;
        const V pixel =
            j % lanes == 0 ? piece[index] : shift_lanes<T, bytes>(piece[index], piece[index + 1], j % lanes);
#pragma GCC unroll 4
        for (int t = first; t < last; ++t) sum.row[t][v] += weights[j - t * kernel_width] * pixel;
      }
  } else {
#pragma GCC unroll 8
    for (std::int64_t j = 0; j < kernel_width; ++j) {
      V pixel[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) pixel[v] = *reinterpret_cast<const V*>(pixels + j + v * lanes);
#pragma GCC unroll 4
      for (int t = first; t < last; ++t)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sum.row[t][v] += weights[j - t * kernel_width] * pixel[v];
      // Without this barrier the compiler hoists the loads of all columns and spills registers.
      asm volatile("" ::: "memory");
    }
  }
}

// One tile: output row t is the sum of kernel row i times input row t + i. row[r] + column points to the
// pixel of input row r under the first kernel column. A kernel width known at compile time (0: unknown) is
// unrolled.
template <std::size_t bytes, int tile_rows, int known_width, class T>
[[gnu::always_inline]] inline void correlate_tile(const T* const* row, std::int64_t column, const T* kernel,
                                                  const CorrelateShape& s, T* out, std::int64_t out_stride,
                                                  int out_rows) {
  using V = Vector<T, bytes>;
  constexpr int lanes = bytes / sizeof(T), vectors = tile_vectors<bytes, tile_rows>;
  constexpr bool shifting = uses_shifts<bytes, tile_rows, known_width>;
  const std::int64_t height = s.kernel_height, width = s.kernel_width;
  Sums<T, bytes, tile_rows, vectors> sum{};
  if constexpr (tile_rows == small_tile_rows) {
    add_row<0, 1, known_width, shifting>(sum, row[0] + column, kernel, width);
#pragma GCC unroll 1
    for (std::int64_t r = 1; r < height; ++r)
      add_row<0, 2, known_width, shifting>(sum, row[r] + column, kernel + r * width, width);
    add_row<1, 2, known_width, shifting>(sum, row[height] + column, kernel + height * width, width);
  } else {  // height ≥ 3
    add_row<0, 1, known_width, shifting>(sum, row[0] + column, kernel, width);
    add_row<0, 2, known_width, shifting>(sum, row[1] + column, kernel + width, width);
    add_row<0, 3, known_width, shifting>(sum, row[2] + column, kernel + 2 * width, width);
#pragma GCC unroll 1
    for (std::int64_t r = 3; r < height; ++r)
      add_row<0, 4, known_width, shifting>(sum, row[r] + column, kernel + r * width, width);
    add_row<1, 4, known_width, shifting>(sum, row[height] + column, kernel + height * width, width);
    add_row<2, 4, known_width, shifting>(sum, row[height + 1] + column, kernel + (height + 1) * width, width);
    add_row<3, 4, known_width, shifting>(sum, row[height + 2] + column, kernel + (height + 2) * width, width);
  }
#pragma GCC unroll 4
  for (int t = 0; t < tile_rows; ++t)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      if (t < out_rows) *reinterpret_cast<V*>(out + t * out_stride + v * lanes) = sum.row[t][v];
}

// A window of an image row that may extend beyond the left and right edges, where it reads zeros.
template <class T>
struct RowWindow {
  std::int64_t from;   // first column, possibly negative
  std::int64_t first;  // window columns [first, last) are inside the image
  std::int64_t last;
  std::int64_t size;

  // `columns` columns starting at column `from_column` of an image of `width` columns.
  RowWindow(std::int64_t from_column, std::int64_t columns, std::int64_t width)
      : from(from_column),
        first(std::clamp<std::int64_t>(-from_column, 0, columns)),
        last(std::clamp<std::int64_t>(width - from_column, first, columns)),
        size(columns) {}

  void copy(const T* row, T* to) const {  // a null row is all zeros
    const std::int64_t begin = row ? first : size, end = row ? last : size;
    std::fill(to, to + begin, T{0});
    if (begin < end) std::copy(row + from + begin, row + from + end, to + begin);
    std::fill(to + end, to + size, T{0});
  }
};

template <class T>
const T* row_of(const CorrelateShape& s, const T* image, std::int64_t y) {
  return y >= 0 && y < s.height ? image + y * s.width : nullptr;
}

// Rows [begin, end) of the result, in panels of columns. The input rows of a panel are copied to a ring
// buffer and padded with zeros: tiles need no special cases at the borders, and rows of an image whose width
// is a power of two do not evict each other from the L1 cache.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void correlate_with_ring(const CorrelateShape& s, const T* image,
                                                       const T* kernel, T* out, std::int64_t begin,
                                                       std::int64_t end) {
  constexpr std::int64_t tile_width = tile_vectors<bytes, large_tile_rows> * (bytes / sizeof(T)),
                         panel_width = 65536 / sizeof(T);
  const std::int64_t ring = s.kernel_height + large_tile_rows - 1;
  const std::int64_t extra_columns = s.kernel_width - 1;
  const std::int64_t pitch = std::min(panel_width, s.width) + tile_width + extra_columns + 64 / sizeof(T);
  std::vector<T> rows(static_cast<std::size_t>(ring * pitch));
  std::vector<const T*> row(static_cast<std::size_t>(ring));
  std::array<T, large_tile_rows * tile_width> result{};

  for (std::int64_t left = 0; left < s.width; left += panel_width) {
    const std::int64_t right = std::min(left + panel_width, s.width);
    const RowWindow<T> window(left - s.anchor_x, right - left + tile_width + extra_columns, s.width);
    const auto slot = [&](std::int64_t y) { return rows.data() + (y - begin) % ring * pitch; };
    const auto fetch = [&](std::int64_t y) { window.copy(row_of(s, image, y - s.anchor_y), slot(y)); };
    for (std::int64_t y = begin; y < begin + ring - large_tile_rows; ++y) fetch(y);
    for (std::int64_t y = begin; y < end; y += large_tile_rows) {
      for (std::int64_t r = ring - large_tile_rows; r < ring; ++r) fetch(y + r);
      for (std::int64_t r = 0; r < ring; ++r) row[r] = slot(y + r);
      const int out_rows = static_cast<int>(std::min<std::int64_t>(large_tile_rows, end - y));
      T* target = out + y * s.width;
      std::int64_t x = left;
      for (; x + tile_width <= right; x += tile_width)
        correlate_tile<bytes, large_tile_rows, 0>(row.data(), x - left, kernel, s, target + x, s.width,
                                                  out_rows);
      if (x == right) continue;
      correlate_tile<bytes, large_tile_rows, 0>(row.data(), x - left, kernel, s, result.data(), tile_width,
                                                out_rows);
      for (int t = 0; t < out_rows; ++t)
        std::copy_n(result.data() + t * tile_width, right - x, target + t * s.width + x);
    }
  }
}

// The same for kernels of up to three rows, directly from the image, because copying would cost more than it
// saves. Only tiles at the edges and rows outside the image are read from zero-padded copies.
template <std::size_t bytes, int known_width, class T>
[[gnu::always_inline]] inline void correlate_direct(const CorrelateShape& s, const T* image, const T* kernel,
                                                    T* out, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t tile_width = tile_vectors<bytes, small_tile_rows> * (bytes / sizeof(T));
  const std::int64_t input_rows = s.kernel_height + small_tile_rows - 1;
  // Columns that a tile reads beyond its own; whole vectors if it shifts them.
  constexpr std::int64_t lanes = bytes / sizeof(T);
  const std::int64_t extra_columns = uses_shifts<bytes, small_tile_rows, known_width>
                                         ? (s.kernel_width - 1 + lanes - 1) / lanes * lanes
                                         : s.kernel_width - 1;
  const std::int64_t window_size = tile_width + extra_columns;
  const std::vector<T> zeros(static_cast<std::size_t>(s.width), T{0});
  std::vector<T> patch(static_cast<std::size_t>(input_rows * window_size));
  std::vector<const T*> source(static_cast<std::size_t>(input_rows)), row(source);
  std::array<T, small_tile_rows * tile_width> result{};
  // The columns of tiles that neither read nor write beyond the edges.
  const std::int64_t inner_begin = std::min(s.anchor_x, s.width);
  const std::int64_t inner_width =
      s.width - std::max<std::int64_t>(extra_columns - s.anchor_x, 0) - inner_begin;
  const std::int64_t inner_end =
      inner_begin + std::max<std::int64_t>(inner_width, 0) / tile_width * tile_width;

  for (std::int64_t y = begin; y < end; y += small_tile_rows) {
    const int out_rows = static_cast<int>(std::min<std::int64_t>(small_tile_rows, end - y));
    for (std::int64_t r = 0; r < input_rows; ++r) {
      const T* image_row = row_of(s, image, y + r - s.anchor_y);
      source[r] = image_row ? image_row : zeros.data();
    }
    T* target = out + y * s.width;
    for (std::int64_t x = inner_begin; x < inner_end; x += tile_width)
      correlate_tile<bytes, small_tile_rows, known_width>(source.data(), x - s.anchor_x, kernel, s,
                                                          target + x, s.width, out_rows);
    const auto edge_tiles = [&](std::int64_t left, std::int64_t right) __attribute__((always_inline)) {
      for (std::int64_t x = left; x < right; x += tile_width) {
        const RowWindow<T> window(x - s.anchor_x, window_size, s.width);
        for (std::int64_t r = 0; r < input_rows; ++r) {
          window.copy(source[r], patch.data() + r * window_size);
          row[r] = patch.data() + r * window_size;
        }
        correlate_tile<bytes, small_tile_rows, known_width>(row.data(), 0, kernel, s, result.data(),
                                                            tile_width, out_rows);
        for (int t = 0; t < out_rows; ++t)
          std::copy_n(result.data() + t * tile_width, std::min(tile_width, right - x),
                      target + t * s.width + x);
      }
    };
    edge_tiles(0, inner_begin);
    edge_tiles(inner_end, s.width);
  }
}

template <class T>
void correlate_parallel(const CorrelateShape& s, const T* image, const T* kernel, T* out) {
  std::vector<T> flipped;
  if (s.flipped) {
    flipped.assign(kernel, kernel + s.kernel_height * s.kernel_width);
    std::reverse(flipped.begin(), flipped.end());
    kernel = flipped.data();
  }
  const std::int64_t work = large_tile_rows * s.width * s.kernel_height * s.kernel_width;
  const std::int64_t grain =
      std::max<std::int64_t>((1 << 16) / std::max<std::int64_t>(work, 1), 1) * large_tile_rows;
  parallel_for(s.height, grain, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      if (s.kernel_height <= 3 && s.kernel_width == 3)
        return correlate_direct<bytes, 3>(s, image, kernel, out, begin, end);
      if (s.kernel_height <= 3) return correlate_direct<bytes, 0>(s, image, kernel, out, begin, end);
      return correlate_with_ring<bytes>(s, image, kernel, out, begin, end);
    });
  });
}

template <class T>
void correlate_weights_cpu(const CorrelateShape& s, const T* image, const T* gradient, T* out) {
  parallel_for(s.kernel_height * s.kernel_width, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t weight = begin; weight < end; ++weight) {
      const std::int64_t shift_y = weight / s.kernel_width - s.anchor_y,
                         shift_x = weight % s.kernel_width - s.anchor_x;
      double total = 0;
      for (std::int64_t y = std::max<std::int64_t>(0, -shift_y); y < std::min(s.height, s.height - shift_y);
           ++y) {
        T row_sum = 0;
        for (std::int64_t x = std::max<std::int64_t>(0, -shift_x); x < std::min(s.width, s.width - shift_x);
             ++x)
          row_sum += gradient[y * s.width + x] * image[(y + shift_y) * s.width + x + shift_x];
        total += static_cast<double>(row_sum);
      }
      out[weight] = static_cast<T>(total);
    }
  });
}

}  // namespace

template <>
void correlate_kernel<Version::parallel>(DType dtype, const CorrelateShape& shape, const std::byte* image,
                                         const std::byte* kernel, std::byte* out, StreamView) {
  on_dtype(FloatingTypes{}, dtype, "correlate", [&]<class T>() {
    correlate_parallel(shape, reinterpret_cast<const T*>(image), reinterpret_cast<const T*>(kernel),
                       reinterpret_cast<T*>(out));
  });
}

template <>
void correlate_weights_kernel<Backend::cpu>(DType dtype, const CorrelateShape& shape, const std::byte* image,
                                            const std::byte* gradient, std::byte* out, StreamView) {
  on_dtype(FloatingTypes{}, dtype, "correlate", [&]<class T>() {
    correlate_weights_cpu(shape, reinterpret_cast<const T*>(image), reinterpret_cast<const T*>(gradient),
                          reinterpret_cast<T*>(out));
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

detail::CorrelateShape checked_shape(const Tensor& image, const Tensor& kernel) {
  common_device("correlate", {&image, &kernel});
  const DType dtype = common_dtype("correlate", {&image, &kernel});
  on_dtype(detail::FloatingTypes{}, dtype, "correlate", []<class T>() {});
  check(image.rank() == 2 && kernel.rank() == 2, "[correlate] expected two matrices, got shapes {} and {}",
        image.shape().to_string(), kernel.shape().to_string());
  check(kernel.numel() > 0, "[correlate] expected a kernel of at least 1x1, got {}",
        kernel.shape().to_string());
  return {.height = image.size(0),
          .width = image.size(1),
          .kernel_height = kernel.size(0),
          .kernel_width = kernel.size(1),
          .anchor_y = kernel.size(0) / 2,
          .anchor_x = kernel.size(1) / 2};
}

Tensor compute(const detail::CorrelateShape& shape, const Tensor& image, const Tensor& kernel,
               Version version) {
  Tensor out = Tensor::empty(image.shape(), image.dtype(), image.device());
  const Tensor dense_image = image.contiguous(), dense_kernel = kernel.contiguous();
  detail::on_version(version, image.device(), "correlate", [&]<Version V>() {
    if (out.numel() > 0)
      detail::correlate_kernel<V>(image.dtype(), shape, dense_image.bytes(), dense_kernel.bytes(),
                                  out.bytes(), current_stream(image.device()));
  });
  return out;
}

// The correlation of the gradient with the flipped kernel; the anchor is flipped too.
Tensor image_gradient(const detail::CorrelateShape& shape, const Tensor& kernel, const Tensor& gradient) {
  detail::CorrelateShape flipped = shape;
  flipped.anchor_y = shape.kernel_height - 1 - shape.anchor_y;
  flipped.anchor_x = shape.kernel_width - 1 - shape.anchor_x;
  flipped.flipped = true;
  return compute(flipped, gradient, kernel, tuned_version(kernel.device()));
}

Tensor kernel_gradient(const detail::CorrelateShape& shape, const Tensor& image, const Tensor& gradient) {
  Tensor out = Tensor::empty({shape.kernel_height, shape.kernel_width}, image.dtype(), image.device());
  const Tensor dense_image = image.contiguous(), dense_gradient = gradient.contiguous();
  on_backend(image.device(), "correlate", [&]<Backend B>() {
    detail::correlate_weights_kernel<B>(image.dtype(), shape, dense_image.bytes(), dense_gradient.bytes(),
                                        out.bytes(), current_stream(image.device()));
  });
  return out;
}

}  // namespace

Tensor correlate(const Tensor& image, const Tensor& kernel, Version version) {
  return compute(checked_shape(image, kernel), image.detach(), kernel.detach(), version);
}

Tensor correlate(const Tensor& image, const Tensor& kernel) {
  const detail::CorrelateShape shape = checked_shape(image, kernel);
  Tensor out = compute(shape, image.detach(), kernel.detach(), tuned_version(image.device()));
  if (wants_grad(image) || wants_grad(kernel))
    record(out, "correlate", {&image, &kernel},
           [shape, image = wants_grad(kernel) ? image.detach() : Tensor(),
            kernel = wants_grad(image) ? kernel.detach() : Tensor()](const Tensor& g) {
             return Gradients{kernel.defined() ? image_gradient(shape, kernel, g) : Tensor(),
                              image.defined() ? kernel_gradient(shape, image, g) : Tensor()};
           });
  return out;
}

}  // namespace tandem
