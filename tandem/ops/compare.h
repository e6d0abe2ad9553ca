// Comparisons with broadcasting: operands of one dtype and device give u8, 1 where the relation holds and 0
// elsewhere. NaN is unequal to everything, itself included, and every ordering with it is false. No gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);

// greater and greater_equal are these with the operands swapped.
enum class Comparison { equal, not_equal, less, less_equal };

// Operands in the layout's order: out (u8), a, b (dtype).
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

// f(functor) for the named comparison.
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

}  // namespace tandem
