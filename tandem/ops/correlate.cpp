#include "tandem/ops/correlate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

using FloatingTypes = TypeList<float, double>;

template <class T>
void correlate_reference(const CorrelateShape& s, const T* image, const T* kernel, T* out) {
  for (std::int64_t y = 0; y < s.height; ++y)
    for (std::int64_t x = 0; x < s.width; ++x) {
      T sum = 0;
      for (std::int64_t i = 0; i < s.kernel_height; ++i)
        for (std::int64_t j = 0; j < s.kernel_width; ++j) {
          const std::int64_t from_y = y + i - s.anchor_y, from_x = x + j - s.anchor_x;
          if (from_y >= 0 && from_y < s.height && from_x >= 0 && from_x < s.width)
            sum += kernel[s.weight_index(i, j)] * image[from_y * s.width + from_x];
        }
      out[y * s.width + x] = sum;
    }
}

// The tuned version works on tiles of a few output rows by a few SIMD vectors, held in registers: each vector
// loaded from an input row serves every row it touches, so that there are far fewer loads than multiply-adds.
constexpr int few_rows = 2, many_rows = 4;  // of a tile: for kernels of up to three rows, and for higher ones

template <std::size_t bytes, int tile_rows>
constexpr int tile_vectors = tile_rows == few_rows ? 6
                             : bytes == 32         ? 2
                                                   : 4;  // AVX2 has half as many registers

// Small kernels on NEON: rows are read in whole vectors, which are shifted, instead of anew for every column
// of the kernel. Larger ones have no registers left for that, and x86 has cheap unaligned loads and dear
// shifts.
template <std::size_t bytes, int tile_rows, int known_width>
constexpr bool shifts = bytes == 16 && tile_rows == few_rows&& known_width > 0;

// The sums of a tile.
template <class T, std::size_t bytes, int rows, int vectors>
struct Sums {
  Vector<T, bytes> row[rows][vectors];
};

// Lanes `count`, `count` + 1, … of two vectors that lie side by side.
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

// Adds one input row to the rows [first, last) of a tile, the ones it touches. `pixels` is where the input
// row lies under the kernel's first column, `weights` the kernel's row for the tile's first one.
template <int first, int last, int known_width, bool shifting, class T, std::size_t bytes, int rows,
          int vectors>
[[gnu::always_inline]] inline void add_row(Sums<T, bytes, rows, vectors>& sum, const T* pixels,
                                           const T* weights, std::int64_t width) {
  using V = Vector<T, bytes>;
  constexpr int lanes = bytes / sizeof(T);
  const std::int64_t kernel_width = known_width > 0 ? known_width : width;
  if constexpr (shifting) {
    constexpr int more = (known_width - 1 + lanes - 1) / lanes;
    V piece[vectors + more];
#pragma GCC unroll 8
    for (int v = 0; v < vectors + more; ++v) piece[v] = *reinterpret_cast<const V*>(pixels + v * lanes);
#pragma GCC unroll 8
    for (int j = 0; j < known_width; ++j)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const int at = v + j / lanes;
        const V pixel =
            j % lanes == 0 ? piece[at] : shift_lanes<T, bytes>(piece[at], piece[at + 1], j % lanes);
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
      asm volatile("" ::: "memory");  // else the loads of all columns come first, and registers run out
    }
  }
}

// One tile: output row t is the sum of kernel row i times input row t + i. row[r] + column is where input row
// r lies under the kernel's first column. A kernel width that is known to the compiler (0: it is not) is
// unrolled.
template <std::size_t bytes, int tile_rows, int known_width, class T>
[[gnu::always_inline]] inline void correlate_tile(const T* const* row, std::int64_t column, const T* kernel,
                                                  const CorrelateShape& s, T* out, std::int64_t out_stride,
                                                  int out_rows) {
  using V = Vector<T, bytes>;
  constexpr int lanes = bytes / sizeof(T), vectors = tile_vectors<bytes, tile_rows>;
  constexpr bool shifting = shifts<bytes, tile_rows, known_width>;
  const std::int64_t height = s.kernel_height, width = s.kernel_width;
  Sums<T, bytes, tile_rows, vectors> sum{};
  if constexpr (tile_rows == few_rows) {
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

// Part of a row that may reach beyond the image's sides, with zeros there.
template <class T>
struct RowWindow {
  std::int64_t from, first, last, reach;

  // `reach` columns from column `from` of an image `width` wide.
  RowWindow(std::int64_t from_column, std::int64_t columns, std::int64_t width)
      : from(from_column),
        first(std::clamp<std::int64_t>(-from_column, 0, columns)),
        last(std::clamp<std::int64_t>(width - from_column, first, columns)),
        reach(columns) {}

  void copy(const T* row, T* to) const {  // no row: all zeros
    const std::int64_t begin = row ? first : reach, end = row ? last : reach;
    std::fill(to, to + begin, T{0});
    if (begin < end) std::copy(row + from + begin, row + from + end, to + begin);
    std::fill(to + end, to + reach, T{0});
  }
};

template <class T>
const T* row_of(const CorrelateShape& s, const T* image, std::int64_t y) {
  return y >= 0 && y < s.height ? image + y * s.width : nullptr;
}

// Rows [begin, end) of the result, in panels of columns. A panel's input rows are copied into a ring, with
// zeros where the image ends: tiles need no special cases at the borders, and rows of an image whose width is
// a power of two do not push each other out of the first cache.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void correlate_by_ring(const CorrelateShape& s, const T* image, const T* kernel,
                                                     T* out, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t tile_width = tile_vectors<bytes, many_rows> * (bytes / sizeof(T)),
                         panel_width = 65536 / sizeof(T);
  const std::int64_t ring = s.kernel_height + many_rows - 1;
  const std::int64_t ahead = s.kernel_width - 1;
  const std::int64_t pitch = std::min(panel_width, s.width) + tile_width + ahead + 64 / sizeof(T);
  std::vector<T> rows(static_cast<std::size_t>(ring * pitch));
  std::vector<const T*> row(static_cast<std::size_t>(ring));
  std::array<T, many_rows * tile_width> result{};

  for (std::int64_t left = 0; left < s.width; left += panel_width) {
    const std::int64_t right = std::min(left + panel_width, s.width);
    const RowWindow<T> window(left - s.anchor_x, right - left + tile_width + ahead, s.width);
    const auto slot = [&](std::int64_t y) { return rows.data() + (y - begin) % ring * pitch; };
    const auto fetch = [&](std::int64_t y) { window.copy(row_of(s, image, y - s.anchor_y), slot(y)); };
    for (std::int64_t y = begin; y < begin + ring - many_rows; ++y) fetch(y);
    for (std::int64_t y = begin; y < end; y += many_rows) {
      for (std::int64_t r = ring - many_rows; r < ring; ++r) fetch(y + r);
      for (std::int64_t r = 0; r < ring; ++r) row[r] = slot(y + r);
      const int out_rows = static_cast<int>(std::min<std::int64_t>(many_rows, end - y));
      T* target = out + y * s.width;
      std::int64_t x = left;
      for (; x + tile_width <= right; x += tile_width)
        correlate_tile<bytes, many_rows, 0>(row.data(), x - left, kernel, s, target + x, s.width, out_rows);
      if (x == right) continue;
      correlate_tile<bytes, many_rows, 0>(row.data(), x - left, kernel, s, result.data(), tile_width,
                                          out_rows);
      for (int t = 0; t < out_rows; ++t)
        std::copy_n(result.data() + t * tile_width, right - x, target + t * s.width + x);
    }
  }
}

// The same for kernels of up to three rows, straight from the image: there is too little work to pay for a
// copy. Only the tiles at the sides, and rows beyond the image, are read from copies with zeros.
template <std::size_t bytes, int known_width, class T>
[[gnu::always_inline]] inline void correlate_directly(const CorrelateShape& s, const T* image,
                                                      const T* kernel, T* out, std::int64_t begin,
                                                      std::int64_t end) {
  constexpr std::int64_t tile_width = tile_vectors<bytes, few_rows> * (bytes / sizeof(T));
  const std::int64_t input_rows = s.kernel_height + few_rows - 1;
  // Columns a tile reads beyond its own: those of whole vectors where it shifts them.
  constexpr std::int64_t lanes = bytes / sizeof(T);
  const std::int64_t ahead = shifts<bytes, few_rows, known_width>
                                 ? (s.kernel_width - 1 + lanes - 1) / lanes * lanes
                                 : s.kernel_width - 1;
  const std::int64_t reach = tile_width + ahead;
  const std::vector<T> zeros(static_cast<std::size_t>(s.width), T{0});
  std::vector<T> patch(static_cast<std::size_t>(input_rows * reach));
  std::vector<const T*> source(static_cast<std::size_t>(input_rows)), row(source);
  std::array<T, few_rows * tile_width> result{};
  // Columns where a whole tile neither reads nor writes beyond the sides.
  const std::int64_t inner_begin = std::min(s.anchor_x, s.width);
  const std::int64_t inner_width = s.width - std::max<std::int64_t>(ahead - s.anchor_x, 0) - inner_begin;
  const std::int64_t inner_end =
      inner_begin + std::max<std::int64_t>(inner_width, 0) / tile_width * tile_width;

  for (std::int64_t y = begin; y < end; y += few_rows) {
    const int out_rows = static_cast<int>(std::min<std::int64_t>(few_rows, end - y));
    for (std::int64_t r = 0; r < input_rows; ++r) {
      const T* exists = row_of(s, image, y + r - s.anchor_y);
      source[r] = exists ? exists : zeros.data();
    }
    T* target = out + y * s.width;
    for (std::int64_t x = inner_begin; x < inner_end; x += tile_width)
      correlate_tile<bytes, few_rows, known_width>(source.data(), x - s.anchor_x, kernel, s, target + x,
                                                   s.width, out_rows);
    const auto side = [&](std::int64_t left, std::int64_t right) __attribute__((always_inline)) {
      for (std::int64_t x = left; x < right; x += tile_width) {
        const RowWindow<T> window(x - s.anchor_x, reach, s.width);
        for (std::int64_t r = 0; r < input_rows; ++r) {
          window.copy(source[r], patch.data() + r * reach);
          row[r] = patch.data() + r * reach;
        }
        correlate_tile<bytes, few_rows, known_width>(row.data(), 0, kernel, s, result.data(), tile_width,
                                                     out_rows);
        for (int t = 0; t < out_rows; ++t)
          std::copy_n(result.data() + t * tile_width, std::min(tile_width, right - x),
                      target + t * s.width + x);
      }
    };
    side(0, inner_begin);
    side(inner_end, s.width);
  }
}

template <class T>
void correlate_parallel(const CorrelateShape& s, const T* image, const T* kernel, T* out) {
  std::vector<T> turned;
  if (s.turned) {
    turned.assign(kernel, kernel + s.kernel_height * s.kernel_width);
    std::reverse(turned.begin(), turned.end());
    kernel = turned.data();
  }
  const std::int64_t work = many_rows * s.width * s.kernel_height * s.kernel_width;
  const std::int64_t grain =
      std::max<std::int64_t>((1 << 16) / std::max<std::int64_t>(work, 1), 1) * many_rows;
  parallel_for(s.height, grain, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      if (s.kernel_height <= 3 && s.kernel_width == 3)
        return correlate_directly<bytes, 3>(s, image, kernel, out, begin, end);
      if (s.kernel_height <= 3) return correlate_directly<bytes, 0>(s, image, kernel, out, begin, end);
      return correlate_by_ring<bytes>(s, image, kernel, out, begin, end);
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
void correlate_kernel<Version::reference>(DType dtype, const CorrelateShape& shape, const std::byte* image,
                                          const std::byte* kernel, std::byte* out, StreamView) {
  on_dtype(FloatingTypes{}, dtype, "correlate", [&]<class T>() {
    correlate_reference(shape, reinterpret_cast<const T*>(image), reinterpret_cast<const T*>(kernel),
                        reinterpret_cast<T*>(out));
  });
}

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

namespace {

CorrelateShape checked_shape(const Tensor& image, const Tensor& kernel) {
  common_device("correlate", {&image, &kernel});
  const DType dtype = common_dtype("correlate", {&image, &kernel});
  on_dtype(FloatingTypes{}, dtype, "correlate", []<class T>() {});
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

Tensor compute(const CorrelateShape& shape, const Tensor& image, const Tensor& kernel, Version version) {
  Tensor out = Tensor::empty(image.shape(), image.dtype(), image.device());
  const Tensor dense_image = image.contiguous(), dense_kernel = kernel.contiguous();
  on_version(version, image.device(), "correlate", [&]<Version V>() {
    if (out.numel() > 0)
      correlate_kernel<V>(image.dtype(), shape, dense_image.bytes(), dense_kernel.bytes(), out.bytes(),
                          current_stream(image.device()));
  });
  return out;
}

// The gradient correlated with the kernel turned by 180 degrees; the anchor turns with it.
Tensor correlate_gradient_of_image(const CorrelateShape& shape, const Tensor& kernel,
                                   const Tensor& gradient) {
  CorrelateShape back = shape;
  back.anchor_y = shape.kernel_height - 1 - shape.anchor_y;
  back.anchor_x = shape.kernel_width - 1 - shape.anchor_x;
  back.turned = true;
  return compute(back, gradient, kernel, tuned_version(kernel.device()));
}

Tensor correlate_gradient_of_kernel(const CorrelateShape& shape, const Tensor& image,
                                    const Tensor& gradient) {
  Tensor out = Tensor::empty({shape.kernel_height, shape.kernel_width}, image.dtype(), image.device());
  const Tensor dense_image = image.contiguous(), dense_gradient = gradient.contiguous();
  on_backend(image.device(), "correlate", [&]<Backend B>() {
    correlate_weights_kernel<B>(image.dtype(), shape, dense_image.bytes(), dense_gradient.bytes(),
                                out.bytes(), current_stream(image.device()));
  });
  return out;
}

}  // namespace

Tensor correlate(const Tensor& image, const Tensor& kernel, Version version) {
  return compute(checked_shape(image, kernel), image.detach(), kernel.detach(), version);
}

Tensor correlate(const Tensor& image, const Tensor& kernel) {
  const CorrelateShape shape = checked_shape(image, kernel);
  Tensor out = compute(shape, image.detach(), kernel.detach(), tuned_version(image.device()));
  if (wants_grad(image) || wants_grad(kernel))
    record(out, "correlate", {&image, &kernel},
           [shape, image = wants_grad(kernel) ? image.detach() : Tensor(),
            kernel = wants_grad(image) ? kernel.detach() : Tensor()](const Tensor& g) {
             return Gradients{kernel.defined() ? correlate_gradient_of_image(shape, kernel, g) : Tensor(),
                              image.defined() ? correlate_gradient_of_kernel(shape, image, g) : Tensor()};
           });
  return out;
}

}  // namespace tandem
