// Operators that move or convert values without computing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tandem/core/dtype.h"
#include "tandem/files/onnx/onnx_operators.h"
#include "tandem/files/small_floats.h"

namespace tandem {
namespace {

OnnxTensor integers_tensor(const std::vector<std::int64_t>& values) {
  OnnxTensor out = make_onnx_tensor(OnnxType::i64, {std::ssize(values)});
  std::ranges::copy(values, values_of<std::int64_t>(out));
  return out;
}

OnnxTensors identity(const OnnxCall& call) {
  return {call.input(0)};
}

OnnxTensors shape(const OnnxCall& call) {
  const OnnxDims& dims = call.input(0).dims;
  const auto rank = std::ssize(dims);
  const auto position = [&](const char* name, std::int64_t otherwise) {
    const std::int64_t given = call.integer(name, otherwise);
    return std::clamp(given < 0 ? given + rank : given, std::int64_t{0}, std::int64_t{rank});
  };
  const std::int64_t start = position("start", 0), end = position("end", rank);
  return {integers_tensor({dims.begin() + start, dims.begin() + std::max(start, end)})};
}

// The values as doubles, or as integers where that is exact.
template <class To, class From>
To converted(From value) {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {  // toward zero, within the range
    const auto min = static_cast<double>(std::numeric_limits<To>::min());
    const auto max = static_cast<double>(std::numeric_limits<To>::max());
    const auto number = static_cast<double>(value);
    if (std::isnan(number)) return 0;
    return number <= min   ? std::numeric_limits<To>::min()
           : number >= max ? std::numeric_limits<To>::max()
                           : static_cast<To>(number);
  } else {
    return static_cast<To>(value);
  }
}

OnnxTensors cast(const OnnxCall& call) {
  const OnnxTensor& x = call.input(0);
  const auto type = static_cast<OnnxType>(call.integer("to", 0));
  OnnxTensor out = make_onnx_tensor(type, x.dims);
  const std::int64_t count = x.count();
  if (x.type == OnnxType::f16 || x.type == OnnxType::bf16) {
    call.need(type == OnnxType::f32, "expected f32 from {}, got {}", name_of(x.type), name_of(type));
    const auto* bits = x.values<std::uint16_t>();
    auto* to = values_of<float>(out);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = x.type == OnnxType::f16 ? from_half(bits[i])
                                      : std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
    return {std::move(out)};
  }
  if (type == OnnxType::bf16) {
    call.need(x.type == OnnxType::f32, "expected f32 to bf16, got {}", name_of(x.type));
    for (std::int64_t i = 0; i < count; ++i)
      values_of<std::uint16_t>(out)[i] = BFloat16(x.values<float>()[i]).bits;
    return {std::move(out)};
  }
  on_onnx_type(call, x.type, [&]<class From>() {
    const From* from = x.values<From>();
    on_onnx_type(call, type, [&]<class To>() {
      To* to = values_of<To>(out);
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = type == OnnxType::boolean ? static_cast<To>(from[i] != 0) : converted<To>(from[i]);
    });
  });
  return {std::move(out)};
}

OnnxTensors squeeze(const OnnxCall& call) {
  OnnxTensor out = call.input(0);
  std::vector<bool> removed(out.dims.size(), false);
  if (call.has(1))
    for (const std::int64_t axis : call.integers(1)) removed[onnx_axis(call, axis, removed.size())] = true;
  OnnxDims dims;
  for (std::size_t i = 0; i < removed.size(); ++i) {
    const bool remove = call.has(1) ? removed[i] : out.dims[i] == 1;
    call.need(!remove || out.dims[i] == 1, "expected size 1 on axis {}, got {}", i, to_string(out.dims));
    if (!remove) dims.push_back(out.dims[i]);
  }
  out.dims = std::move(dims);
  return {std::move(out)};
}

OnnxTensors unsqueeze(const OnnxCall& call) {
  OnnxTensor out = call.input(0);
  const std::vector<std::int64_t> axes = call.integers(1);
  OnnxDims dims(out.dims.size() + axes.size(), 0);
  for (const std::int64_t axis : axes) dims[onnx_axis(call, axis, dims.size())] = 1;
  auto next = out.dims.begin();
  for (std::int64_t& size : dims) {
    if (size == 1) continue;
    call.need(next != out.dims.end(), "expected distinct axes");
    size = *next++;
  }
  call.need(next == out.dims.end(), "expected distinct axes");
  out.dims = std::move(dims);
  return {std::move(out)};
}

OnnxTensors reshape(const OnnxCall& call) {
  OnnxTensor out = call.input(0);
  OnnxDims dims = call.integers(1);
  std::int64_t known = 1;
  std::ptrdiff_t unknown = -1;
  bool fits = true;
  for (std::ptrdiff_t i = 0; i < std::ssize(dims); ++i) {
    std::int64_t& size = dims[static_cast<std::size_t>(i)];
    if (size == 0 && i < std::ssize(out.dims)) size = out.dims[static_cast<std::size_t>(i)];
    if (size == -1 && unknown < 0)
      unknown = i;
    else
      fits = fits && size >= 0 && !__builtin_mul_overflow(known, size, &known);
  }
  const std::int64_t count = out.count();
  if (fits && unknown >= 0 && known > 0) dims[static_cast<std::size_t>(unknown)] = count / known;
  call.need(fits && (unknown < 0 || known > 0) && element_count(dims) == count,
            "expected a shape of {} elements, got {}", count, to_string(call.integers(1)));
  out.dims = std::move(dims);
  return {std::move(out)};
}

OnnxTensors transpose(const OnnxCall& call) {
  const OnnxTensor& x = call.input(0);
  const std::size_t rank = x.dims.size();
  std::vector<std::int64_t> reversed(rank);
  for (std::size_t i = 0; i < rank; ++i) reversed[i] = static_cast<std::int64_t>(rank - 1 - i);
  const std::vector<std::int64_t> order = call.list("perm", reversed);
  OnnxDims steps(rank, 1), dims(rank), to_steps(rank);
  for (std::size_t i = rank; i-- > 1;) steps[i - 1] = steps[i] * x.dims[i];
  std::vector<bool> used(rank, false);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = onnx_axis(call, order[i], rank);
    call.need(!used[axis], "expected every axis once, got {}", to_string(order));
    used[axis] = true;
    dims[i] = x.dims[axis];
    to_steps[i] = steps[axis];
  }
  OnnxTensor out = make_onnx_tensor(x.type, dims);
  const auto size = static_cast<std::size_t>(size_of(x.type));
  OnnxDims position(rank, 0);
  std::int64_t from = 0;
  for (std::int64_t i = 0, count = out.count(); i < count; ++i) {
    std::memcpy(out.data.data() + static_cast<std::size_t>(i) * size,
                x.data.data() + static_cast<std::size_t>(from) * size, size);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += to_steps[axis];
      if (++position[axis] < dims[axis]) break;
      from -= to_steps[axis] * dims[axis];
      position[axis] = 0;
    }
  }
  return {std::move(out)};
}

// Sizes before and after an axis, in elements and bytes.
struct Split {
  std::int64_t outer = 1, inner_bytes = 1;
};

Split split_at(const OnnxTensor& x, std::size_t axis) {
  Split split{.outer = 1, .inner_bytes = size_of(x.type)};
  for (std::size_t i = 0; i < x.dims.size(); ++i)
    if (i != axis) (i < axis ? split.outer : split.inner_bytes) *= x.dims[i];
  return split;
}

OnnxTensors concat(const OnnxCall& call) {
  const OnnxTensor& first = call.input(0);
  const std::size_t axis = onnx_axis(call, call.integer("axis", 0), first.dims.size());
  OnnxDims dims = first.dims;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const OnnxTensor& next = call.input(i);
    OnnxDims same = next.dims;
    if (axis < same.size()) same[axis] = first.dims[axis];
    call.need(next.type == first.type && same == first.dims,
              "expected operands that differ on axis {} only, got {} {} and {} {}", axis, name_of(first.type),
              to_string(first.dims), name_of(next.type), to_string(next.dims));
    call.need(!__builtin_add_overflow(dims[axis], next.dims[axis], &dims[axis]), "expected a smaller result");
  }
  OnnxTensor out = make_onnx_tensor(first.type, dims);
  const Split split = split_at(first, axis);
  char* to = out.data.data();
  for (std::int64_t row = 0; row < split.outer; ++row)
    for (const OnnxTensor* part : call.inputs) {
      const std::int64_t bytes = part->dims[axis] * split.inner_bytes;
      std::memcpy(to, part->data.data() + row * bytes, static_cast<std::size_t>(bytes));
      to += bytes;
    }
  return {std::move(out)};
}

// Into parts of equal size, as many as there are outputs.
OnnxTensors split(const OnnxCall& call) {
  const OnnxTensor& x = call.input(0);
  const std::size_t axis = onnx_axis(call, call.integer("axis", 0), x.dims.size());
  const auto parts = std::ssize(call.node.outputs);
  call.need(!call.has(1) && parts > 0 && x.dims[axis] % parts == 0, "expected {} equal parts, got {}", parts,
            to_string(x.dims));
  OnnxDims dims = x.dims;
  dims[axis] /= parts;
  const Split sizes = split_at(x, axis);
  const std::int64_t bytes = dims[axis] * sizes.inner_bytes;
  OnnxTensors all;
  for (std::ptrdiff_t part = 0; part < parts; ++part) {
    OnnxTensor& out = all.emplace_back(make_onnx_tensor(x.type, dims));
    for (std::int64_t row = 0; row < sizes.outer; ++row)
      std::memcpy(out.data.data() + row * bytes, x.data.data() + (row * parts + part) * bytes,
                  static_cast<std::size_t>(bytes));
  }
  return all;
}

OnnxTensors range(const OnnxCall& call) {
  const OnnxTensor &start = call.input(0), &limit = call.input(1), &delta = call.input(2);
  call.need(start.type == limit.type && start.type == delta.type && start.count() == 1 &&
                limit.count() == 1 && delta.count() == 1,
            "expected three numbers of one type");
  return {on_onnx_type(call, start.type, [&]<class T>() {
    const T first = *start.values<T>(), last = *limit.values<T>(), step = *delta.values<T>();
    const double count =
        std::ceil((static_cast<double>(last) - static_cast<double>(first)) / static_cast<double>(step));
    call.need(step != 0 && count < 1e9, "expected fewer than 10^9 values, got {} to {} by {}", first, last,
              step);
    OnnxTensor out = make_onnx_tensor(start.type, {static_cast<std::int64_t>(std::max(0.0, count))});
    T* to = values_of<T>(out);
    for (std::int64_t i = 0; i < out.dims[0]; ++i) to[i] = static_cast<T>(first + static_cast<T>(i) * step);
    return out;
  })};
}

}  // namespace

const std::vector<OnnxOperator>& onnx_shape_operators() {
  static const std::vector<OnnxOperator> all{
      {"Cast", cast},           {"Concat", concat},      {"Identity", identity}, {"Range", range},
      {"Reshape", reshape},     {"Shape", shape},        {"Split", split},       {"Squeeze", squeeze},
      {"Transpose", transpose}, {"Unsqueeze", unsqueeze}};
  return all;
}

}  // namespace tandem
