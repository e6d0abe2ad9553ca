// Element-wise operators with NumPy's broadcasting, reductions and softmax.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tandem/files/onnx/onnx_operators.h"

namespace tandem {
namespace {

using Dims = OnnxDims;

Dims broadcast_dims(const OnnxCall& call, const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {  // from the last axis
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    call.need(x == y || x == 1 || y == 1, "expected shapes that can be broadcast, got {} and {}",
              to_string(a), to_string(b));
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

// The step of every axis of `to` in an array of `dims` that is broadcast to it.
Dims broadcast_steps(const Dims& dims, const Dims& to) {
  Dims steps(to.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t size = dims[dims.size() - 1 - i];
    steps[to.size() - 1 - i] = size == 1 ? 0 : step;
    step *= size;
  }
  return steps;
}

// Calls f(out, offsets) for every element of `dims`, where offsets[i] is the position in operand i.
template <std::size_t operands, class F>
void for_each_element(const Dims& dims, const std::array<Dims, operands>& steps, const F& f) {
  const std::int64_t count = element_count(dims);
  if (count == 0) return;
  const std::size_t rank = dims.size();
  const std::int64_t inner = rank > 0 ? dims[rank - 1] : 1;
  Dims position(rank, 0);
  std::array<std::int64_t, operands> row{};
  for (std::int64_t begin = 0; begin < count; begin += inner) {
    std::array<std::int64_t, operands> at = row;
    for (std::int64_t i = 0; i < inner; ++i) {
      f(begin + i, at);
      if (rank > 0)
        for (std::size_t k = 0; k < operands; ++k) at[k] += steps[k][rank - 1];
    }
    for (std::size_t axis = rank > 0 ? rank - 1 : 0; axis-- > 0;) {
      for (std::size_t k = 0; k < operands; ++k) row[k] += steps[k][axis];
      if (++position[axis] < dims[axis]) break;
      for (std::size_t k = 0; k < operands; ++k) row[k] -= steps[k][axis] * dims[axis];
      position[axis] = 0;
    }
  }
}

// f(a, b) for all elements; the result has the type of the operands unless `result` is given.
template <class F>
OnnxTensor binary(const OnnxCall& call, const OnnxTensor& a, const OnnxTensor& b, const F& f,
                  OnnxType result = OnnxType::undefined) {
  call.need(a.type == b.type, "expected operands of one type, got {} and {}", name_of(a.type),
            name_of(b.type));
  const Dims dims = broadcast_dims(call, a.dims, b.dims);
  OnnxTensor out = make_onnx_tensor(result == OnnxType::undefined ? a.type : result, dims);
  const std::array steps{broadcast_steps(a.dims, dims), broadcast_steps(b.dims, dims)};
  on_onnx_type(call, a.type, [&]<class T>() {
    const T *x = a.values<T>(), *y = b.values<T>();
    using Result = decltype(f(T{}, T{}));
    if constexpr (std::is_same_v<Result, bool>) {
      auto* to = values_of<std::uint8_t>(out);
      for_each_element<2>(dims, steps,
                          [&](std::int64_t i, const auto& at) { to[i] = f(x[at[0]], y[at[1]]); });
    } else {
      T* to = values_of<T>(out);
      for_each_element<2>(dims, steps, [&](std::int64_t i, const auto& at) {
        to[i] = static_cast<T>(f(x[at[0]], y[at[1]]));
      });
    }
  });
  return out;
}

template <class F>
OnnxTensors two(const OnnxCall& call, const F& f) {
  return {binary(call, call.input(0), call.input(1), f)};
}

// Max and Min take any number of operands.
template <class F>
OnnxTensors fold(const OnnxCall& call, const F& f) {
  OnnxTensor result = call.input(0);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) result = binary(call, result, call.input(i), f);
  return {std::move(result)};
}

template <class F>
OnnxTensors compare(const OnnxCall& call, const F& f) {
  return {binary(call, call.input(0), call.input(1), f, OnnxType::boolean)};
}

struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      check(b != 0 && !(std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min()),
            "[onnx] Div: expected a divisor other than 0 whose quotient fits, got {} / {}", a, b);
    }
    return static_cast<T>(a / b);
  }
};

// Integers wrap around.
template <class Op>
struct Wrapping {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Op{}(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
    else
      return Op{}(a, b);
  }
};

struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(a)) return a;
    return a > b ? a : b;
  }
};

struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(a)) return a;
    return a < b ? a : b;
  }
};

OnnxTensors add(const OnnxCall& call) {
  return two(call, Wrapping<std::plus<>>{});
}
OnnxTensors subtract(const OnnxCall& call) {
  return two(call, Wrapping<std::minus<>>{});
}
OnnxTensors multiply(const OnnxCall& call) {
  return two(call, Wrapping<std::multiplies<>>{});
}
OnnxTensors divide(const OnnxCall& call) {
  return two(call, Divide{});
}
OnnxTensors power(const OnnxCall& call) {
  return two(call, [](auto a, auto b) { return std::pow(a, b); });
}
OnnxTensors larger(const OnnxCall& call) {
  return fold(call, Larger{});
}
OnnxTensors smaller(const OnnxCall& call) {
  return fold(call, Smaller{});
}
OnnxTensors less(const OnnxCall& call) {
  return compare(call, [](auto a, auto b) { return a < b; });
}
OnnxTensors greater_or_equal(const OnnxCall& call) {
  return compare(call, [](auto a, auto b) { return a >= b; });
}
OnnxTensors either(const OnnxCall& call) {
  return compare(call, [](auto a, auto b) { return a != 0 || b != 0; });
}

OnnxTensors where(const OnnxCall& call) {
  const OnnxTensor &condition = call.input(0), &a = call.input(1), &b = call.input(2);
  call.need(condition.type == OnnxType::boolean && a.type == b.type,
            "expected bool and two operands of one type, got {}, {} and {}", name_of(condition.type),
            name_of(a.type), name_of(b.type));
  const Dims dims = broadcast_dims(call, condition.dims, broadcast_dims(call, a.dims, b.dims));
  OnnxTensor out = make_onnx_tensor(a.type, dims);
  const std::array steps{broadcast_steps(condition.dims, dims), broadcast_steps(a.dims, dims),
                         broadcast_steps(b.dims, dims)};
  on_onnx_type(call, a.type, [&]<class T>() {
    const auto* chosen = condition.values<std::uint8_t>();
    const T *x = a.values<T>(), *y = b.values<T>();
    T* to = values_of<T>(out);
    for_each_element<3>(dims, steps, [&](std::int64_t i, const auto& at) {
      to[i] = chosen[at[0]] != 0 ? x[at[1]] : y[at[2]];
    });
  });
  return {std::move(out)};
}

// f(x) for all elements of a floating type, computed in that type.
template <class F>
OnnxTensors floating(const OnnxCall& call, const F& f) {
  const OnnxTensor& x = call.input(0);
  call.need(x.type == OnnxType::f32 || x.type == OnnxType::f64, "expected f32 or f64, got {}",
            name_of(x.type));
  OnnxTensor out = make_onnx_tensor(x.type, x.dims);
  const auto apply = [&]<class T>() {
    const T* from = x.values<T>();
    T* to = values_of<T>(out);
    for (std::int64_t i = 0, count = x.count(); i < count; ++i) to[i] = static_cast<T>(f(from[i]));
  };
  if (x.type == OnnxType::f32)
    apply.template operator()<float>();
  else
    apply.template operator()<double>();
  return {std::move(out)};
}

OnnxTensors absolute(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::abs(x); });
}
OnnxTensors sign(const OnnxCall& call) {
  return floating(call, [](auto x) { return (x > 0) - (x < 0); });
}
OnnxTensors round_half_even(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::nearbyint(x); });
}

OnnxTensors floor(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::floor(x); });
}
OnnxTensors exponential(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::exp(x); });
}
OnnxTensors logarithm(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::log(x); });
}
OnnxTensors square_root(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::sqrt(x); });
}
OnnxTensors error_function(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::erf(x); });
}
OnnxTensors relu(const OnnxCall& call) {
  return floating(call, [](auto x) { return x < 0 ? decltype(x){0} : x; });
}
OnnxTensors sigmoid(const OnnxCall& call) {
  return floating(call, [](auto x) { return 1 / (1 + std::exp(-x)); });
}
OnnxTensors hyperbolic_tangent(const OnnxCall& call) {
  return floating(call, [](auto x) { return std::tanh(x); });
}
OnnxTensors hard_sigmoid(const OnnxCall& call) {
  const float alpha = call.number("alpha", 0.2f), beta = call.number("beta", 0.5f);
  return floating(call, [=](auto x) {
    using T = decltype(x);
    return std::clamp(static_cast<T>(alpha) * x + static_cast<T>(beta), T{0}, T{1});
  });
}
OnnxTensors hard_swish(const OnnxCall& call) {
  return floating(call, [](auto x) {
    using T = decltype(x);
    return x * std::clamp(x / 6 + T{0.5}, T{0}, T{1});
  });
}

// Reduces the axes of input 1, all without it. Elements are added in order, in double for floating types.
template <class F>
OnnxTensors reduce(const OnnxCall& call, double initial, const F& f) {
  const OnnxTensor& x = call.input(0);
  std::vector<bool> reduced(x.dims.size(), !call.has(1));
  if (call.has(1))
    for (const std::int64_t axis : call.integers(1)) reduced[onnx_axis(call, axis, x.dims.size())] = true;
  const bool keep = call.integer("keepdims", 1) != 0;
  Dims kept = x.dims, dims;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
    if (keep || !reduced[i]) dims.push_back(kept[i]);
  }
  OnnxTensor out = make_onnx_tensor(x.type, dims);
  const std::array steps{broadcast_steps(kept, x.dims)};
  on_onnx_type(call, x.type, [&]<class T>() {
    using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
    std::vector<Sum> sums(static_cast<std::size_t>(out.count()), static_cast<Sum>(initial));
    const T* from = x.values<T>();
    for_each_element<1>(x.dims, steps, [&](std::int64_t i, const auto& at) {
      Sum& sum = sums[static_cast<std::size_t>(at[0])];
      sum = f(sum, static_cast<Sum>(from[i]));
    });
    T* to = values_of<T>(out);
    for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i]);
  });
  return {std::move(out)};
}

OnnxTensors reduce_sum(const OnnxCall& call) {
  return reduce(call, 0, [](auto a, auto b) { return a + b; });
}
OnnxTensors reduce_max(const OnnxCall& call) {
  const OnnxType type = call.input(0).type;
  call.need(type == OnnxType::f32 || type == OnnxType::f64, "expected f32 or f64, got {}", name_of(type));
  return reduce(call, -std::numeric_limits<double>::infinity(),
                [](auto a, auto b) { return std::max(a, b); });
}

OnnxTensors softmax(const OnnxCall& call) {
  const OnnxTensor& x = call.input(0);
  call.need(x.type == OnnxType::f32 && !x.dims.empty(), "expected f32 of one axis or more, got {} {}",
            name_of(x.type), to_string(x.dims));
  call.need(onnx_axis(call, call.integer("axis", -1), x.dims.size()) + 1 == x.dims.size(),
            "expected the last axis");
  OnnxTensor out = make_onnx_tensor(x.type, x.dims);
  const std::int64_t columns = x.dims.back(), count = x.count();
  for (std::int64_t begin = 0; begin < count; begin += columns) {
    const float* from = x.values<float>() + begin;
    float* to = values_of<float>(out) + begin;
    const double max = *std::max_element(from, from + columns);
    double sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += std::exp(from[i] - max);
    for (std::int64_t i = 0; i < columns; ++i) to[i] = static_cast<float>(std::exp(from[i] - max) / sum);
  }
  return {std::move(out)};
}

}  // namespace

const std::vector<OnnxOperator>& onnx_math_operators() {
  static const std::vector<OnnxOperator> all{{"Abs", absolute},
                                             {"Add", add},
                                             {"Div", divide},
                                             {"Erf", error_function},
                                             {"Exp", exponential},
                                             {"Floor", floor},
                                             {"GreaterOrEqual", greater_or_equal},
                                             {"HardSigmoid", hard_sigmoid},
                                             {"HardSwish", hard_swish},
                                             {"Less", less},
                                             {"Log", logarithm},
                                             {"Max", larger},
                                             {"Min", smaller},
                                             {"Mul", multiply},
                                             {"Or", either},
                                             {"Pow", power},
                                             {"ReduceMax", reduce_max},
                                             {"ReduceSum", reduce_sum},
                                             {"Relu", relu},
                                             {"Round", round_half_even},
                                             {"Sigmoid", sigmoid},
                                             {"Sign", sign},
                                             {"Softmax", softmax},
                                             {"Sqrt", square_root},
                                             {"Sub", subtract},
                                             {"Tanh", hyperbolic_tangent},
                                             {"Where", where}};
  return all;
}

}  // namespace tandem
