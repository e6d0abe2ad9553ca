// Matrix products, convolution and pooling of NCHW images.
#include <algorithm>
#include <limits>

#include "tandem/core/parallel.h"
#include "tandem/files/onnx/onnx_operators.h"

namespace tandem {
namespace {

// out (rows, columns) += a (rows, depth) · b (depth, columns), all row-major. Zeros of `a` are skipped: the
// weights of a resize are mostly zeros.
template <class T>
void add_product(std::int64_t rows, std::int64_t depth, std::int64_t columns, const T* a, const T* b,
                 T* out) {
  parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* to = out + row * columns;
      for (std::int64_t k = 0; k < depth; ++k) {
        const T factor = a[row * depth + k];
        if (factor == 0) continue;
        const T* from = b + k * columns;
        for (std::int64_t i = 0; i < columns; ++i) to[i] += factor * from[i];
      }
    }
  });
}

// The sizes of a product: a matrix on the right, or as many matrices as on the left.
struct Product {
  std::int64_t batches = 1, rows = 1, depth = 1, columns = 1;
  bool same_right = true;  // one matrix for all batches
  OnnxDims dims;           // of the result
};

Product product_of(const OnnxCall& call, const OnnxTensor& a, const OnnxTensor& b) {
  const std::size_t rank_a = a.dims.size(), rank_b = b.dims.size();
  call.need(rank_a >= 2 && rank_b >= 2 && a.dims[rank_a - 1] == b.dims[rank_b - 2],
            "expected matrices (…, m, k) and (…, k, n), got {} and {}", to_string(a.dims), to_string(b.dims));
  Product product{.rows = a.dims[rank_a - 2], .depth = a.dims[rank_a - 1], .columns = b.dims[rank_b - 1]};
  product.same_right = rank_b == 2;
  const bool left_once = rank_a == 2 && rank_b > 2;
  product.dims = left_once ? b.dims : a.dims;
  product.dims[product.dims.size() - 2] = product.rows;
  product.dims.back() = product.columns;
  call.need(product.same_right || left_once ||
                std::equal(a.dims.begin(), a.dims.end() - 2, b.dims.begin(), b.dims.end() - 2),
            "expected equal batches, got {} and {}", to_string(a.dims), to_string(b.dims));
  for (std::size_t i = 0; i + 2 < product.dims.size(); ++i) product.batches *= product.dims[i];
  return product;
}

OnnxTensors matmul(const OnnxCall& call) {
  const OnnxTensor &a = call.input(0), &b = call.input(1);
  call.need(a.type == b.type && (a.type == OnnxType::f32 || a.type == OnnxType::f64),
            "expected two operands of f32 or f64, got {} and {}", name_of(a.type), name_of(b.type));
  const Product p = product_of(call, a, b);
  OnnxTensor out = make_onnx_tensor(a.type, p.dims);
  const auto multiply = [&]<class T>() {
    for (std::int64_t i = 0; i < p.batches; ++i)
      add_product(p.rows, p.depth, p.columns, a.values<T>() + (a.dims.size() > 2 ? i * p.rows * p.depth : 0),
                  b.values<T>() + (p.same_right ? 0 : i * p.depth * p.columns),
                  values_of<T>(out) + i * p.rows * p.columns);
  };
  if (a.type == OnnxType::f32)
    multiply.template operator()<float>();
  else
    multiply.template operator()<double>();
  return {std::move(out)};
}

// u8 matrices without zero points → i32. Of mostly zeros on the right only the others are visited.
OnnxTensors matmul_integer(const OnnxCall& call) {
  const OnnxTensor &a = call.input(0), &b = call.input(1);
  call.need(a.type == OnnxType::u8 && b.type == OnnxType::u8 && !call.has(2) && !call.has(3) &&
                a.dims.size() == 2 && b.dims.size() == 2,
            "expected two u8 matrices without zero points, got {} {} and {} {}", name_of(a.type),
            to_string(a.dims), name_of(b.type), to_string(b.dims));
  const Product p = product_of(call, a, b);
  OnnxTensor out = make_onnx_tensor(OnnxType::i32, p.dims);
  struct Entry {
    std::int64_t column;
    std::int32_t value;
  };
  std::vector<Entry> entries;
  std::vector<std::size_t> ends{0};
  const auto* right = b.values<std::uint8_t>();
  for (std::int64_t k = 0; k < p.depth; ++k) {
    for (std::int64_t i = 0; i < p.columns; ++i)
      if (const std::uint8_t value = right[k * p.columns + i]) entries.push_back({i, value});
    ends.push_back(entries.size());
  }
  auto* to = values_of<std::int32_t>(out);
  parallel_for(p.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::uint8_t* left = a.values<std::uint8_t>() + row * p.depth;
      for (std::int64_t k = 0; k < p.depth; ++k) {
        if (left[k] == 0) continue;
        for (std::size_t i = ends[static_cast<std::size_t>(k)]; i < ends[static_cast<std::size_t>(k) + 1];
             ++i)
          to[row * p.columns + entries[i].column] += left[k] * entries[i].value;
      }
    }
  });
  return {std::move(out)};
}

// a · b or a · bᵀ, plus a row.
OnnxTensors gemm(const OnnxCall& call) {
  const OnnxTensor &a = call.input(0), &b = call.input(1);
  call.need(a.type == OnnxType::f32 && b.type == OnnxType::f32 && a.dims.size() == 2 && b.dims.size() == 2 &&
                call.number("alpha", 1) == 1 && call.number("beta", 1) == 1 && call.integer("transA", 0) == 0,
            "expected f32 matrices with alpha = beta = 1 and transA = 0, got {} and {}", to_string(a.dims),
            to_string(b.dims));
  const bool transposed = call.integer("transB", 0) != 0;
  const std::int64_t rows = a.dims[0], depth = a.dims[1], columns = b.dims[transposed ? 0 : 1];
  call.need(b.dims[transposed ? 1 : 0] == depth, "expected {} values in a row, got {}", depth,
            to_string(b.dims));
  OnnxTensor out = make_onnx_tensor(OnnxType::f32, {rows, columns});
  auto* to = values_of<float>(out);
  if (call.has(2)) {
    const OnnxTensor& bias = call.input(2);
    call.need(bias.type == OnnxType::f32 && bias.dims == OnnxDims{columns},
              "expected a bias of {} values, got {}", columns, to_string(bias.dims));
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(bias.values<float>(), columns, to + row * columns);
  }
  if (!transposed) {
    add_product(rows, depth, columns, a.values<float>(), b.values<float>(), to);
    return {std::move(out)};
  }
  parallel_for(columns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = begin; column < end; ++column) {
        const float *x = a.values<float>() + row * depth, *y = b.values<float>() + column * depth;
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) sum += static_cast<double>(x[k]) * y[k];
        to[row * columns + column] += static_cast<float>(sum);
      }
  });
  return {std::move(out)};
}

// A window that slides over images (n, channels, height, width).
struct Window {
  std::int64_t images = 0, channels = 0, height = 0, width = 0;
  std::int64_t kernel_y = 1, kernel_x = 1, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  std::int64_t top = 0, left = 0, out_height = 0, out_width = 0;
};

Window window_of(const OnnxCall& call, std::int64_t kernel_y, std::int64_t kernel_x) {
  const OnnxTensor& x = call.input(0);
  call.need(x.type == OnnxType::f32 && x.dims.size() == 4, "expected f32 images (n, c, h, w), got {} {}",
            name_of(x.type), to_string(x.dims));
  call.expect_text("auto_pad", "NOTSET");
  call.need(call.integer("ceil_mode", 0) == 0, "expected ceil_mode = 0");
  const std::vector<std::int64_t> stride = call.list("strides", {1, 1}),
                                  dilation = call.list("dilations", {1, 1}),
                                  pads = call.list("pads", {0, 0, 0, 0});
  const auto in_range = [](const std::vector<std::int64_t>& values, std::int64_t min) {
    return std::ranges::all_of(values, [&](std::int64_t value) { return value >= min && value <= 1 << 20; });
  };
  call.need(
      in_range(stride, 1) && in_range(dilation, 1) && in_range(pads, 0) && in_range({kernel_y, kernel_x}, 1),
      "expected kernels, strides and dilations from 1 to 2^20 and paddings from 0");
  Window w{.images = x.dims[0],
           .channels = x.dims[1],
           .height = x.dims[2],
           .width = x.dims[3],
           .kernel_y = kernel_y,
           .kernel_x = kernel_x,
           .stride_y = stride[0],
           .stride_x = stride[1],
           .dilation_y = dilation[0],
           .dilation_x = dilation[1],
           .top = pads[0],
           .left = pads[1]};
  const std::int64_t slack_y = w.height + pads[0] + pads[2] - (dilation[0] * (kernel_y - 1) + 1);
  const std::int64_t slack_x = w.width + pads[1] + pads[3] - (dilation[1] * (kernel_x - 1) + 1);
  call.need(slack_y >= 0 && slack_x >= 0, "expected images that the window fits, got {}", to_string(x.dims));
  w.out_height = slack_y / w.stride_y + 1;
  w.out_width = slack_x / w.stride_x + 1;
  return w;
}

// The pixels that the windows see, one row per channel and kernel position.
void gather_windows(const Window& w, std::int64_t channels, const float* image, std::vector<float>& rows) {
  const std::int64_t positions = w.out_height * w.out_width, kernel = w.kernel_y * w.kernel_x;
  parallel_for(channels * kernel, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* from = image + i / kernel * w.height * w.width;
      float* to = rows.data() + i * positions;
      const std::int64_t dy = i % kernel / w.kernel_x * w.dilation_y - w.top;
      const std::int64_t dx = i % w.kernel_x * w.dilation_x - w.left;
      for (std::int64_t y = 0; y < w.out_height; ++y)
        for (std::int64_t x = 0; x < w.out_width; ++x) {
          const std::int64_t from_y = y * w.stride_y + dy, from_x = x * w.stride_x + dx;
          const bool inside = from_y >= 0 && from_y < w.height && from_x >= 0 && from_x < w.width;
          *to++ = inside ? from[from_y * w.width + from_x] : 0.0f;
        }
    }
  });
}

OnnxTensors conv(const OnnxCall& call) {
  const OnnxTensor& weight = call.input(1);
  call.need(weight.type == OnnxType::f32 && weight.dims.size() == 4,
            "expected f32 filters (out, in, y, x), got {}", to_string(weight.dims));
  const Window w = window_of(call, weight.dims[2], weight.dims[3]);
  const std::int64_t groups = call.integer("group", 1), filters = weight.dims[0];
  call.need(groups > 0 && filters % groups == 0 && w.channels % groups == 0 &&
                weight.dims[1] == w.channels / groups,
            "expected {} channels in {} groups, got filters {}", w.channels, groups, to_string(weight.dims));
  OnnxTensor out = make_onnx_tensor(OnnxType::f32, {w.images, filters, w.out_height, w.out_width});
  const std::int64_t positions = w.out_height * w.out_width, own_filters = filters / groups;
  const std::int64_t own_channels = w.channels / groups, depth = own_channels * w.kernel_y * w.kernel_x;
  auto* to = values_of<float>(out);
  if (call.has(2)) {
    const OnnxTensor& bias = call.input(2);
    call.need(bias.type == OnnxType::f32 && bias.dims == OnnxDims{filters},
              "expected a bias of {} values, got {}", filters, to_string(bias.dims));
    for (std::int64_t i = 0; i < w.images * filters; ++i)
      std::fill_n(to + i * positions, positions, bias.values<float>()[i % filters]);
  }
  std::vector<float> rows(
      static_cast<std::size_t>(make_onnx_tensor(OnnxType::u8, {depth, positions}).count()));
  for (std::int64_t image = 0; image < w.images; ++image)
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t first = image * w.channels + group * own_channels;
      gather_windows(w, own_channels, call.input(0).values<float>() + first * w.height * w.width, rows);
      add_product(own_filters, depth, positions, weight.values<float>() + group * own_filters * depth,
                  rows.data(), to + (image * filters + group * own_filters) * positions);
    }
  return {std::move(out)};
}

// Combines the pixels of every window: f(sum, pixel) for those inside the image, then result(sum, count).
template <class F, class Result>
OnnxTensors pool(const OnnxCall& call, float initial, const F& f, const Result& result) {
  const std::vector<std::int64_t> kernel = call.list("kernel_shape", {0, 0});
  const Window w = window_of(call, kernel[0], kernel[1]);
  OnnxTensor out = make_onnx_tensor(OnnxType::f32, {w.images, w.channels, w.out_height, w.out_width});
  parallel_for(w.images * w.channels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const float* from = call.input(0).values<float>() + plane * w.height * w.width;
      float* to = values_of<float>(out) + plane * w.out_height * w.out_width;
      for (std::int64_t y = 0; y < w.out_height; ++y)
        for (std::int64_t x = 0; x < w.out_width; ++x) {
          float sum = initial;
          std::int64_t count = 0;
          for (std::int64_t i = 0; i < w.kernel_y * w.kernel_x; ++i) {
            const std::int64_t from_y = y * w.stride_y + i / w.kernel_x * w.dilation_y - w.top;
            const std::int64_t from_x = x * w.stride_x + i % w.kernel_x * w.dilation_x - w.left;
            if (from_y < 0 || from_y >= w.height || from_x < 0 || from_x >= w.width) continue;
            sum = f(sum, from[from_y * w.width + from_x]);
            ++count;
          }
          *to++ = result(sum, count);
        }
    }
  });
  return {std::move(out)};
}

OnnxTensors max_pool(const OnnxCall& call) {
  call.need(call.node.outputs.size() == 1, "expected one output, got {}", call.node.outputs.size());
  return pool(
      call, -std::numeric_limits<float>::infinity(), [](float a, float b) { return b > a ? b : a; },
      [](float max, std::int64_t) { return max; });
}

OnnxTensors average_pool(const OnnxCall& call) {
  const bool counts_padding = call.integer("count_include_pad", 0) != 0;
  const std::vector<std::int64_t> kernel = call.list("kernel_shape", {0, 0});
  return pool(
      call, 0, [](float a, float b) { return a + b; },
      [&](float sum, std::int64_t count) {
        return sum / static_cast<float>(counts_padding ? kernel[0] * kernel[1] : count);
      });
}

OnnxTensors global_average_pool(const OnnxCall& call) {
  const Window w = window_of(call, 1, 1);
  OnnxTensor out = make_onnx_tensor(OnnxType::f32, {w.images, w.channels, 1, 1});
  const std::int64_t pixels = w.height * w.width;
  for (std::int64_t plane = 0; plane < w.images * w.channels; ++plane) {
    const float* from = call.input(0).values<float>() + plane * pixels;
    double sum = 0;
    for (std::int64_t i = 0; i < pixels; ++i) sum += from[i];
    values_of<float>(out)[plane] = static_cast<float>(sum / static_cast<double>(pixels));
  }
  return {std::move(out)};
}

}  // namespace

const std::vector<OnnxOperator>& onnx_network_operators() {
  static const std::vector<OnnxOperator> all{{"AveragePool", average_pool},
                                             {"Conv", conv},
                                             {"Gemm", gemm},
                                             {"GlobalAveragePool", global_average_pool},
                                             {"MatMul", matmul},
                                             {"MatMulInteger", matmul_integer},
                                             {"MaxPool", max_pool}};
  return all;
}

}  // namespace tandem
