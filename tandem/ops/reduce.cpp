#include "tandem/ops/reduce.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Each reducer folds values in order; `merge` joins two neighbours' results.
template <class T>
struct SumReducer {
  using State = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  using Result = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;
  static constexpr State initial() { return 0; }
  static constexpr State fold(State state, T value, std::int64_t) {
    return state + static_cast<State>(convert<ComputeType<T>>(value));
  }
  static constexpr State merge(State a, State b) { return a + b; }
  static constexpr Result finish(State state) { return convert<Result>(state); }
};

template <class T>
struct ArgmaxReducer {
  struct State {
    ComputeType<T> value;
    std::int64_t index;  // −1: nothing seen
  };
  using Result = std::int64_t;
  static constexpr State initial() { return {{}, -1}; }
  static constexpr State fold(State state, T element, std::int64_t index) {
    const auto value = convert<ComputeType<T>>(element);
    const bool better =
        state.index < 0 || value > state.value || (value != value && state.value == state.value);
    return better ? State{value, index} : state;
  }
  static constexpr State merge(State a, State b) {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    return b.value > a.value || (b.value != b.value && a.value == a.value) ? b : a;
  }
  static constexpr Result finish(State state) { return state.index; }
};

template <class T>
struct MaxReducer : ArgmaxReducer<T> {
  using Result = T;
  static constexpr Result finish(typename ArgmaxReducer<T>::State state) { return convert<T>(state.value); }
};

// A long reduction is cut into chunks of a fixed size, whose results are merged in order: the bits do not
// depend on the number of threads. Neighbouring outputs that lie side by side in x are folded together
// (`lanes` of them), which reads memory in order when the reduced axes are the outer ones.
constexpr std::int64_t chunk_size = 1 << 15;
constexpr int lanes = 64;

template <class Reducer, class T>
void reduce_cpu(const Layout<2>& kept, const Layout<1>& reduced, typename Reducer::Result* out, const T* x) {
  using State = typename Reducer::State;
  const std::int64_t chunks = std::max<std::int64_t>((reduced.numel + chunk_size - 1) / chunk_size, 1);
  const std::int64_t x_step = reduced.strides[0][reduced.rank - 1];
  const bool side_by_side = kept.strides[1][kept.rank - 1] == 1 && x_step != 1;
  const std::int64_t width = side_by_side ? std::min<std::int64_t>(lanes, kept.sizes[kept.rank - 1]) : 1;
  const std::int64_t row = kept.sizes[kept.rank - 1];
  const std::int64_t groups_per_row = (row + width - 1) / width;
  const std::int64_t groups = kept.numel / std::max<std::int64_t>(row, 1) * groups_per_row;
  std::vector<State> partial(static_cast<std::size_t>(kept.numel * chunks), Reducer::initial());
  const std::int64_t cost = std::max<std::int64_t>(std::min(reduced.numel, chunk_size) * width, 1);
  parallel_for(groups * chunks, std::max<std::int64_t>((1 << 15) / cost, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t task = begin; task < end; ++task) {
                   const std::int64_t group = task / chunks, chunk = task % chunks;
                   const std::int64_t first = group / groups_per_row * row + group % groups_per_row * width;
                   const std::int64_t count = std::min(width, row - group % groups_per_row * width);
                   const T* source = x + kept.offsets(first)[1];
                   const std::int64_t from = chunk * chunk_size,
                                      to = std::min(from + chunk_size, reduced.numel);
                   std::array<State, lanes> state;
                   state.fill(Reducer::initial());
                   std::int64_t index = from;
                   for_each_run(reduced, from, to, [&](const auto& offset, std::int64_t run) {
                     const T* values = source + offset[0];
                     if (count == 1) {
                       State one = state[0];
                       for (std::int64_t i = 0; i < run; ++i)
                         one = Reducer::fold(one, values[i * x_step], index + i);
                       state[0] = one;
                     } else {
                       for (std::int64_t i = 0; i < run; ++i)
                         for (std::int64_t lane = 0; lane < count; ++lane)
                           state[lane] = Reducer::fold(state[lane], values[i * x_step + lane], index + i);
                     }
                     index += run;
                   });
                   for (std::int64_t lane = 0; lane < count; ++lane)
                     partial[(first + lane) * chunks + chunk] = state[lane];
                 }
               });
  parallel_for(kept.numel, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      State state = partial[i * chunks];
      for (std::int64_t chunk = 1; chunk < chunks; ++chunk)
        state = Reducer::merge(state, partial[i * chunks + chunk]);
      out[kept.offsets(i)[0]] = Reducer::finish(state);
    }
  });
}

}  // namespace

template <>
void reduce_kernel<Backend::cpu>(Reduction reduction, DType dtype, const Layout<2>& kept,
                                 const Layout<1>& reduced, std::byte* out, const std::byte* x, StreamView) {
  on_dtype(AllTypes{}, dtype, "reduce", [&]<class T>() {
    const auto run = [&]<class Reducer>(Reducer) {
      reduce_cpu<Reducer>(kept, reduced, reinterpret_cast<typename Reducer::Result*>(out),
                          reinterpret_cast<const T*>(x));
    };
    switch (reduction) {
      case Reduction::sum:
        return run(SumReducer<T>{});
      case Reduction::max:
        return run(MaxReducer<T>{});
      case Reduction::argmax:
        return run(ArgmaxReducer<T>{});
    }
  });
}

namespace {

// The shape of x with the reduced axes at size 1.
Shape kept_shape(const Tensor& x, const Dims& axes, const char* op) {
  Dims sizes = x.shape();
  for (int i = 0; i < axes.rank(); ++i) sizes[normalize_axis(static_cast<int>(axes[i]), x.rank(), op)] = 1;
  return axes.rank() == 0 ? Shape(Dims::filled(x.rank(), 1)) : Shape(sizes);
}

Tensor drop_axes(const Tensor& result, const Tensor& x, const Dims& axes, ReduceOptions options,
                 const char* op) {
  if (options.keep_axes) return result;
  if (axes.rank() == 0) return result.reshape({});
  std::array<bool, max_rank> reduced{};
  for (int i = 0; i < axes.rank(); ++i)
    reduced[normalize_axis(static_cast<int>(axes[i]), x.rank(), op)] = true;
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!reduced[axis]) sizes.push_back(x.shape()[axis]);
  return result.reshape(Dims(sizes));
}

// Reduces the axes along which `shape` is 1 and x is not.
Tensor compute(Reduction reduction, const char* op, const Tensor& x, const Shape& shape) {
  const Device device = common_device(op, {&x});
  const bool to_i64 =
      reduction == Reduction::argmax || (reduction == Reduction::sum && !is_floating(x.dtype()));
  Tensor out = Tensor::empty(shape, to_i64 ? DType::i64 : x.dtype(), device);
  Dims out_strides = out.strides(), x_strides = x.strides(), reduced_sizes = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis)
    if (shape[axis] == x.shape()[axis]) reduced_sizes[axis] = 1;
  const Shape reduced_shape(reduced_sizes);
  check(reduction == Reduction::sum || out.numel() == 0 || reduced_shape.numel() > 0,
        "[{}] expected at least one element to reduce, got shape {}", op, x.shape().to_string());
  if (out.numel() > 0)
    on_backend(device, op, [&]<Backend B>() {
      reduce_kernel<B>(reduction, x.dtype(), make_layout<2>(shape, {out_strides, x_strides}),
                       make_layout<1>(reduced_shape, {x_strides}), out.bytes(), x.bytes(),
                       current_stream(device));
    });
  return out;
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& axes, ReduceOptions options) {
  Tensor out = compute(Reduction::sum, "sum", x, kept_shape(x, axes, "sum"));
  if (wants_grad(x))
    record(out, "sum", {&x},
           [shape = x.shape()](const Tensor& g) { return Gradients{g.broadcast_view(shape).contiguous()}; });
  return drop_axes(out, x, axes, options, "sum");
}

Tensor mean(const Tensor& x, const Dims& axes, ReduceOptions options) {
  check(is_floating(x.dtype()), "[mean] expected a floating dtype, got {}", name_of(x.dtype()));
  const Tensor total = sum(x, axes, options);
  check(x.numel() > 0 || total.numel() == 0, "[mean] expected at least one element to average, got shape {}",
        x.shape().to_string());
  const double count =
      static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(total.numel(), 1));
  return multiply(total, 1.0 / count);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Dims sizes = Dims::filled(x.rank(), 1);
  const int added = x.rank() - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) sizes[axis + added] = shape[axis];
  Tensor out = compute(Reduction::sum, "sum_to", x, Shape(sizes));
  if (wants_grad(x))
    record(out, "sum_to", {&x}, [original = x.shape()](const Tensor& g) {
      return Gradients{g.broadcast_view(original).contiguous()};
    });
  return out.reshape(shape);
}

Tensor argmax(const Tensor& x, int axis, ReduceOptions options) {
  const Dims axes{axis};
  return drop_axes(compute(Reduction::argmax, "argmax", x, kept_shape(x, axes, "argmax")), x, axes, options,
                   "argmax");
}

Tensor max(const Tensor& x, const Dims& axes, ReduceOptions options) {
  Tensor out = compute(Reduction::max, "max", x, kept_shape(x, axes, "max"));
  return drop_axes(out, x, axes, options, "max");
}

}  // namespace tandem
