#include "tandem/ops/reduce.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/reduce_kernel.h"
#include "tandem/ops/reducers.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

// A long reduction is split into chunks of a fixed size, whose results are merged in order, so the bits do
// not depend on the number of threads. Up to `lanes` outputs that are adjacent in x are reduced together,
// which reads memory in order when the reduced axes are the outer ones.
constexpr std::int64_t chunk_size = 1 << 15;
constexpr int lanes = 64;

// Element i of a dense run goes to accumulator i % 16 for every vector width, so the bits are the same on
// every machine; independent accumulators let the compiler vectorize. For sums only: element indices are not
// passed.
template <class Reducer, class T>
[[gnu::always_inline]] inline typename Reducer::State fold_dense(typename Reducer::State state,
                                                                 const T* values, std::int64_t count) {
  constexpr int accumulators = 16;
  typename Reducer::State partials[accumulators];
  for (auto& one : partials) one = Reducer::initial();
  std::int64_t i = 0;
  for (; i + accumulators <= count; i += accumulators)
    for (int k = 0; k < accumulators; ++k) partials[k] = Reducer::fold(partials[k], values[i + k], 0);
  for (; i < count; ++i) state = Reducer::fold(state, values[i], 0);
  for (int width = accumulators / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) partials[k] = Reducer::merge(partials[k], partials[k + width]);
  return Reducer::merge(state, partials[0]);
}

// Folds elements [from, to) of `reduced` for `count` outputs whose elements are adjacent in memory from
// `source` on.
template <class Reducer, class T>
[[gnu::always_inline]] inline void fold_chunk(const Layout<1>& reduced, std::int64_t from, std::int64_t to,
                                              const T* source, std::int64_t count,
                                              std::array<typename Reducer::State, lanes>& state) {
  const std::int64_t step = reduced.strides[0][reduced.rank - 1];
  std::int64_t index = from;
  for_each_run(
      reduced, from, to, [&](const auto& offset, std::int64_t run) __attribute__((always_inline)) {
        const T* values = source + offset[0];
        if (count > 1) {
          for (std::int64_t i = 0; i < run; ++i)
            for (std::int64_t lane = 0; lane < count; ++lane)
              state[lane] = Reducer::fold(state[lane], values[i * step + lane], index + i);
        } else if (std::is_same_v<Reducer, SumReducer<T>> && step == 1) {
          state[0] = fold_dense<Reducer>(state[0], values, run);
        } else {
          auto one = state[0];
          for (std::int64_t i = 0; i < run; ++i) one = Reducer::fold(one, values[i * step], index + i);
          state[0] = one;
        }
        index += run;
      });
}

template <class Reducer, class T>
void reduce_cpu(const Layout<2>& kept, const Layout<1>& reduced, typename Reducer::Result* out, const T* x) {
  using State = typename Reducer::State;
  const std::int64_t chunks = std::max<std::int64_t>((reduced.numel + chunk_size - 1) / chunk_size, 1);
  const bool adjacent = kept.strides[1][kept.rank - 1] == 1 && reduced.strides[0][reduced.rank - 1] != 1;
  const std::int64_t row = kept.sizes[kept.rank - 1];
  const std::int64_t width = adjacent ? std::min<std::int64_t>(lanes, row) : 1;
  const std::int64_t groups_per_row = (row + width - 1) / width;
  const std::int64_t groups = kept.numel / row * groups_per_row;
  const std::int64_t cost = std::max<std::int64_t>(std::min(reduced.numel, chunk_size) * width, 1);
  std::vector<State> partial(chunks > 1 ? static_cast<std::size_t>(kept.numel * chunks) : 0);
  parallel_for(groups * chunks, std::max<std::int64_t>((1 << 15) / cost, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 with_simd([&]<std::size_t>() __attribute__((always_inline)) {
                   for (std::int64_t task = begin; task < end; ++task) {
                     const std::int64_t group = task / chunks, chunk = task % chunks;
                     const std::int64_t first = group / groups_per_row * row + group % groups_per_row * width;
                     const std::int64_t count = std::min(width, row - group % groups_per_row * width);
                     const std::int64_t from = chunk * chunk_size,
                                        to = std::min(from + chunk_size, reduced.numel);
                     std::array<State, lanes> state;
                     std::fill_n(state.begin(), count, Reducer::initial());
                     fold_chunk<Reducer>(reduced, from, to, x + kept.offsets(first)[1], count, state);
                     for (std::int64_t lane = 0; lane < count; ++lane)
                       if (chunks > 1)
                         partial[(first + lane) * chunks + chunk] = state[lane];
                       else
                         out[kept.offsets(first + lane)[0]] = Reducer::finish(state[lane]);
                   }
                 });
               });
  if (chunks == 1) return;
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
                                 const Layout<1>& reduced, bool, std::byte* out, const std::byte* x,
                                 StreamView) {
  on_dtype(AllTypes{}, dtype, "reduce", [&]<class T>() {
    on_reduction<T>(reduction, [&]<class Reducer>(Reducer) {
      reduce_cpu<Reducer>(kept, reduced, reinterpret_cast<typename Reducer::Result*>(out),
                          reinterpret_cast<const T*>(x));
    });
  });
}

template <>
void scatter_to_argmax_kernel<Backend::cpu>(DType dtype, const Layout<2>& kept, const Layout<1>& reduced,
                                            std::byte* out, const std::byte* values,
                                            const std::int64_t* index, StreamView) {
  on_dtype(AllTypes{}, dtype, "max", [&]<class T>() {
    parallel_for(kept.numel, 1 << 13, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto offset = kept.offsets(i);
        reinterpret_cast<T*>(out)[offset[1] + reduced.offsets(index[i])[0]] =
            reinterpret_cast<const T*>(values)[offset[0]];
      }
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

// The shape of x with size 1 for the reduced axes.
Shape kept_shape(const Tensor& x, const Dims& axes, const char* op) {
  common_device(op, {&x});
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

// The sizes of the axes of x that are reduced to get `shape`; 1 for the kept axes.
Shape reduced_shape(const Tensor& x, const Shape& shape) {
  Dims sizes = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis)
    if (shape[axis] == x.shape()[axis]) sizes[axis] = 1;
  return Shape(sizes);
}

// Reduces the axes along which out is 1 and x is not. Sums over the other axes of a batch must not depend on
// how many of its rows are here.
void reduce_into(detail::Reduction reduction, const char* op, const Tensor& out, const Tensor& x) {
  const Shape reduced = reduced_shape(x, out.shape());
  check(reduction == detail::Reduction::sum || out.numel() == 0 || reduced.numel() > 0,
        "[{}] expected at least one element to reduce, got shape {}", op, x.shape());
  if (out.numel() > 0)
    on_backend(x.device(), op, [&]<Backend B>() {
      detail::reduce_kernel<B>(
          reduction, x.dtype(), detail::make_layout<2>(out.shape(), {out.strides(), x.strides()}),
          detail::make_layout<1>(reduced, {x.strides()}), detail::shard_part() != nullptr, out.bytes(),
          x.bytes(), current_stream(x.device()));
    });
}

Tensor compute(detail::Reduction reduction, const char* op, const Tensor& x, const Shape& shape) {
  const bool to_i64 = reduction == detail::Reduction::argmax ||
                      (reduction == detail::Reduction::sum && !is_floating(x.dtype()));
  Tensor out = Tensor::empty(shape, to_i64 ? DType::i64 : x.dtype(), x.device());
  reduce_into(reduction, op, out, x);
  return out;
}

// Zeros of `shape`, with each value written to position `index` of the reduced axes.
Tensor scatter_to_argmax(const Tensor& values, const Tensor& index, const Shape& shape) {
  Tensor out = zeros(shape, values.dtype(), values.device());
  if (values.numel() > 0)
    on_backend(values.device(), "max", [&]<Backend B>() {
      detail::scatter_to_argmax_kernel<B>(
          values.dtype(), detail::make_layout<2>(values.shape(), {values.strides(), out.strides()}),
          detail::make_layout<1>(reduced_shape(out, values.shape()), {out.strides()}), out.bytes(),
          values.bytes(), index.data<std::int64_t>(), current_stream(values.device()));
    });
  return out;
}

// The elements of x for each element of its mean.
double averaged_count(const Shape& x, const Tensor& mean) {
  return static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(mean.numel(), 1));
}

// Whether the mean of x over `axes` is one over the rows of a batch.
bool averages_rows(const ShardPart& part, const Tensor& x, const Dims& axes) {
  bool first_axis = axes.rank() == 0;
  for (int i = 0; i < axes.rank(); ++i)
    first_axis = first_axis || normalize_axis(static_cast<int>(axes[i]), x.rank(), "mean") == 0;
  return first_axis && x.rank() > 0 && x.size(0) == detail::local_rows(part).count();
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& axes, ReduceOptions options) {
  Tensor out = compute(detail::Reduction::sum, "sum", x, kept_shape(x, axes, "sum"));
  if (wants_grad(x))
    record(out, "sum", {&x},
           [shape = x.shape()](const Tensor& g) { return Gradients{g.broadcast_view(shape).contiguous()}; });
  return drop_axes(out, x, axes, options, "sum");
}

Tensor mean(const Tensor& x, const Dims& axes, ReduceOptions options) {
  common_device("mean", {&x});
  check(is_floating(x.dtype()), "[mean] expected a floating dtype, got {}", name_of(x.dtype()));
  const Tensor total = sum(x, axes, options);
  const ShardPart* const part = detail::shard_part();
  if (part && averages_rows(*part, x, axes)) {
    Dims sizes = x.shape();
    sizes[0] = part->rows;
    return multiply(total, 1.0 / averaged_count(Shape(sizes), total));
  }
  check(x.numel() > 0 || total.numel() == 0, "[mean] expected at least one element to average, got shape {}",
        x.shape());
  return multiply(total, 1.0 / averaged_count(x.shape(), total));
}

namespace {

// `shape` with leading axes of size 1, up to the rank of x.
Shape with_rank_of(const Tensor& x, const Shape& shape) {
  Dims sizes = Dims::filled(x.rank(), 1);
  const int added = x.rank() - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) sizes[axis + added] = shape[axis];
  return Shape(sizes);
}

}  // namespace

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Tensor out = compute(detail::Reduction::sum, "sum_to", x, with_rank_of(x, shape));
  if (wants_grad(x))
    record(out, "sum_to", {&x}, [original = x.shape()](const Tensor& g) {
      return Gradients{g.broadcast_view(original).contiguous()};
    });
  return out.reshape(shape);
}

void detail::sum_into(const Tensor& out, const Tensor& x) {
  if (x.shape() == out.shape()) return copy_into(out, x);
  reduce_into(Reduction::sum, "sum_to", out.reshape(with_rank_of(x, out.shape())), x);
}

Tensor argmax(const Tensor& x, int axis, ReduceOptions options) {
  const Dims axes{axis};
  return drop_axes(compute(detail::Reduction::argmax, "argmax", x, kept_shape(x, axes, "argmax")), x, axes,
                   options, "argmax");
}

Tensor max(const Tensor& x, const Dims& axes, ReduceOptions options) {
  const Shape shape = kept_shape(x, axes, "max");
  Tensor out = compute(detail::Reduction::max, "max", x, shape);
  if (wants_grad(x))
    record(out, "max", {&x},
           [index = compute(detail::Reduction::argmax, "max", x, shape), from = x.shape()](const Tensor& g) {
             return Gradients{scatter_to_argmax(g, index, from)};
           });
  return drop_axes(out, x, axes, options, "max");
}

}  // namespace tandem
