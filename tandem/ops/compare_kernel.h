// Kernels and functors of the comparisons (compare.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// greater and greater_equal are less and less_equal with swapped operands.
enum class Comparison { equal, not_equal, less, less_equal };

// Layout operands: out (u8), a, b (dtype).
template <Backend B>
void compare_kernel(Comparison comparison, DType dtype, const Layout<3>& layout, std::byte* out,
                    const std::byte* a, const std::byte* b, StreamView stream);

struct Equal {
  template <class T>
  constexpr std::uint8_t operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  constexpr std::uint8_t operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  constexpr std::uint8_t operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  constexpr std::uint8_t operator()(T a, T b) const {
    return a <= b;
  }
};

// Calls f with the functor of `comparison`.
template <class F>
void on_comparison(Comparison comparison, F&& f) {
  switch (comparison) {
    case Comparison::equal:
      return f(Equal{});
    case Comparison::not_equal:
      return f(NotEqual{});
    case Comparison::less:
      return f(Less{});
    case Comparison::less_equal:
      return f(LessEqual{});
  }
}

}  // namespace tandem::detail
