// The linear maps of Winograd's F(4×4, 3×3): y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A for a 6×6 patch d, a 3×3 filter g
// and 4×4 results y, and their transposes for the gradient of g. The points are 0, ±1/√2, ±√2, ∞: their
// powers stay closest to 1, which keeps f32 results within a few 1e-6 of their size (±1, ±2 lose twice as
// much). V is a vector of channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::winograd {

// A vector in a register. Not core/simd.h's, which may lie anywhere and so is slow to keep on the stack.
template <std::size_t bytes>
struct Register {
  typedef float type __attribute__((vector_size(bytes)));
};
template <std::size_t bytes>
using Lanes = typename Register<bytes>::type;

inline constexpr int results = 4, patch = 6, places = patch * patch;

inline constexpr float p = 0.707106781186547524f, q = 1.414213562373095049f;  // the points ±p, ±q
inline constexpr float pp = 0.5f, qq = 2.0f, ppp = p * pp, qqq = q * qq;
inline constexpr float of_p = -1.0f / 1.5f, of_q = 1.0f / 6.0f;  // 1 / (2 p² (p² − q²)), 1 / (2 q² (q² − p²))

// Each map works on one axis; `step` is the distance between the elements of that axis.

// Bᵀ: 6 → 6
template <class V>
[[gnu::always_inline]] constexpr void of_patch(V* to, const V* d, std::int64_t step) {
  const V d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step];
  const V even_p = d4 - qq * d2, odd_p = p * (d3 - qq * d1);
  const V even_q = d4 - pp * d2, odd_q = q * (d3 - pp * d1);
  to[0] = d[0] - 2.5f * d2 + d4;
  to[step] = even_p + odd_p;
  to[2 * step] = even_p - odd_p;
  to[3 * step] = even_q + odd_q;
  to[4 * step] = even_q - odd_q;
  to[5 * step] = d1 - 2.5f * d3 + d[5 * step];
}

// Aᵀ: 6 → 4
template <class V>
[[gnu::always_inline]] constexpr void to_results(V* to, std::int64_t to_step, const V* m, std::int64_t step) {
  const V sum_p = m[step] + m[2 * step], difference_p = m[step] - m[2 * step];
  const V sum_q = m[3 * step] + m[4 * step], difference_q = m[3 * step] - m[4 * step];
  to[0] = m[0] + sum_p + sum_q;
  to[to_step] = p * difference_p + q * difference_q;
  to[2 * to_step] = pp * sum_p + qq * sum_q;
  to[3 * to_step] = ppp * difference_p + qqq * difference_q + m[5 * step];
}

// G: 3 → 6
template <class V>
[[gnu::always_inline]] constexpr void of_filter(V* to, std::int64_t to_step, const V* g, std::int64_t step) {
  const V g0 = g[0], g1 = g[step], g2 = g[2 * step];
  const V even_p = of_p * (g0 + pp * g2), odd_p = (of_p * p) * g1;
  const V even_q = of_q * (g0 + qq * g2), odd_q = (of_q * q) * g1;
  to[0] = g0;
  to[to_step] = even_p + odd_p;
  to[2 * to_step] = even_p - odd_p;
  to[3 * to_step] = even_q + odd_q;
  to[4 * to_step] = even_q - odd_q;
  to[5 * to_step] = g2;
}

// A: 4 → 6, the transpose of to_results
template <class V>
[[gnu::always_inline]] constexpr void of_results(V* to, std::int64_t to_step, const V* y, std::int64_t step) {
  const V y0 = y[0], y1 = y[step], y2 = y[2 * step], y3 = y[3 * step];
  const V even_p = y0 + pp * y2, odd_p = p * (y1 + pp * y3);
  const V even_q = y0 + qq * y2, odd_q = q * (y1 + qq * y3);
  to[0] = y0;
  to[to_step] = even_p + odd_p;
  to[2 * to_step] = even_p - odd_p;
  to[3 * to_step] = even_q + odd_q;
  to[4 * to_step] = even_q - odd_q;
  to[5 * to_step] = y3;
}

// Gᵀ: 6 → 3, the transpose of of_filter
template <class V>
[[gnu::always_inline]] constexpr void to_filter(V* to, std::int64_t to_step, const V* u, std::int64_t step) {
  const V sum_p = of_p * (u[step] + u[2 * step]), difference_p = of_p * (u[step] - u[2 * step]);
  const V sum_q = of_q * (u[3 * step] + u[4 * step]), difference_q = of_q * (u[3 * step] - u[4 * step]);
  to[0] = u[0] + sum_p + sum_q;
  to[to_step] = p * difference_p + q * difference_q;
  to[2 * to_step] = pp * sum_p + qq * sum_q + u[5 * step];
}

}  // namespace tandem::winograd
