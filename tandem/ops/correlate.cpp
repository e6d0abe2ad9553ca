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

// The tuned version works on tiles of `tile_rows` output rows by `tile_vectors` SIMD vectors held in
// registers. Each vector loaded from an input row serves all output rows of the tile, so loads stay well
// below multiply-adds. Kernels taller than `tallest` are applied in slices of rows, each adding to the output
// of the one before.
constexpr int tile_rows = 4, tallest = 8;

template <std::size_t bytes>
constexpr int tile_vectors = bytes == 32 ? 2 : 4;  // AVX2 has 16 registers, the others 32

// One tile. row[r] points at input row y + r, already moved to the column under the kernel's first one.
template <int kernel_rows, std::size_t bytes, class T>
[[gnu::always_inline]] inline void correlate_tile(const T* const* row, const T* kernel,
                                                  std::int64_t kernel_width, T* out, std::int64_t out_stride,
                                                  int out_rows, bool add) {
  using V = Vector<T, bytes>;
  constexpr int lanes = bytes / sizeof(T), vectors = tile_vectors<bytes>;
  V sum[tile_rows][vectors] = {};
  for (std::int64_t j = 0; j < kernel_width; ++j) {
#pragma GCC unroll 16
    for (int r = 0; r < kernel_rows + tile_rows - 1; ++r) {
      V pixel[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) pixel[v] = *reinterpret_cast<const V*>(row[r] + j + v * lanes);
#pragma GCC unroll 4
      for (int t = 0; t < tile_rows; ++t) {
        const int i = r - t;
        if (i < 0 || i >= kernel_rows) continue;
        const T weight = kernel[i * kernel_width + j];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[t][v] += weight * pixel[v];
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < tile_rows; ++t) {
    if (t >= out_rows) break;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      auto* target = reinterpret_cast<V*>(out + t * out_stride + v * lanes);
      *target = add ? *target + sum[t][v] : sum[t][v];
    }
  }
}

// `kernel` here is a slice of `kernel_rows` rows whose anchor is `anchor_y` (which may lie outside the
// slice).
template <int kernel_rows, std::size_t bytes, class T>
[[gnu::always_inline]] inline void correlate_rows(const CorrelateShape& s, std::int64_t anchor_y,
                                                  const T* image, const T* kernel, T* out, bool add,
                                                  std::int64_t begin, std::int64_t end) {
  constexpr int input_rows = kernel_rows + tile_rows - 1;
  constexpr std::int64_t tile_width = tile_vectors<bytes> * (bytes / sizeof(T));
  const std::int64_t reach = tile_width + s.kernel_width - 1;  // columns a tile reads
  const std::vector<T> zeros(static_cast<std::size_t>(s.width), T{0});
  std::vector<T> patch(static_cast<std::size_t>(input_rows * reach));
  std::array<T, tile_rows * tile_width> result{};
  // Columns where a whole tile neither reads nor writes beyond the image's sides.
  const std::int64_t inner_begin = std::min(s.anchor_x, s.width);
  const std::int64_t inner_tiles =
      std::max<std::int64_t>(s.width - (s.kernel_width - 1 - s.anchor_x) - inner_begin, 0) / tile_width;
  const std::int64_t inner_end = inner_begin + inner_tiles * tile_width;

  for (std::int64_t y = begin; y < end; y += tile_rows) {
    const int rows = static_cast<int>(std::min<std::int64_t>(tile_rows, end - y));
    const T* source[input_rows];
    for (int r = 0; r < input_rows; ++r) {
      const std::int64_t from = y + r - anchor_y;
      source[r] = from >= 0 && from < s.height ? image + from * s.width : zeros.data();
    }
    const T* row[input_rows];
    for (std::int64_t x = inner_begin; x < inner_end; x += tile_width) {
      for (int r = 0; r < input_rows; ++r) row[r] = source[r] + x - s.anchor_x;
      correlate_tile<kernel_rows, bytes>(row, kernel, s.kernel_width, out + y * s.width + x, s.width, rows,
                                         add);
    }
    // The sides: the same tile over a copy that has zeros beyond the image.
    const auto side = [&](std::int64_t x_begin, std::int64_t x_end) __attribute__((always_inline)) {
      for (std::int64_t x = x_begin; x < x_end; x += tile_width) {
        const std::int64_t columns = std::min(tile_width, x_end - x), from = x - s.anchor_x;
        const std::int64_t first = std::clamp<std::int64_t>(-from, 0, reach);
        const std::int64_t last = std::clamp<std::int64_t>(s.width - from, first, reach);
        for (int r = 0; r < input_rows; ++r) {
          T* copy = patch.data() + r * reach;
          std::fill(copy, copy + first, T{0});
          if (first < last) std::copy(source[r] + from + first, source[r] + from + last, copy + first);
          std::fill(copy + last, copy + reach, T{0});
          row[r] = copy;
        }
        for (int t = 0; t < rows && add; ++t)
          std::copy_n(out + (y + t) * s.width + x, columns, result.data() + t * tile_width);
        correlate_tile<kernel_rows, bytes>(row, kernel, s.kernel_width, result.data(), tile_width, rows, add);
        for (int t = 0; t < rows; ++t)
          std::copy_n(result.data() + t * tile_width, columns, out + (y + t) * s.width + x);
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
  const std::int64_t work = s.width * s.kernel_height * s.kernel_width;
  const std::int64_t grain =
      std::max<std::int64_t>((1 << 16) / std::max<std::int64_t>(work * tile_rows, 1), 1) * tile_rows;
  for (std::int64_t first = 0; first < s.kernel_height; first += tallest) {
    const auto kernel_rows = static_cast<int>(std::min<std::int64_t>(tallest, s.kernel_height - first));
    const T* slice = kernel + first * s.kernel_width;
    parallel_for(s.height, grain, [&](std::int64_t begin, std::int64_t end) {
      with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
        [&]<int... n>(std::integer_sequence<int, n...>) __attribute__((always_inline)) {
          ((kernel_rows == n + 1 ? correlate_rows<n + 1, bytes>(s, s.anchor_y - first, image, slice, out,
                                                                first > 0, begin, end)
                                 : void()),
           ...);
        }
        (std::make_integer_sequence<int, tallest>{});
      });
    });
  }
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
