// The linear transforms of Winograd's F(4×4, 3×3): y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A for a 6×6 input tile d, a
// 3×3 filter g and a 4×4 output tile y, and their transposes for the gradient of g. The interpolation points
// are 0, ±1/√2, ±√2, ∞: their powers stay closest to 1, which keeps the relative error of f32 results at a
// few 1e-6 (±1, ±2 would double it). V is a float or a vector of channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::detail::winograd {

// A vector in a register. Vector of core/simd.h allows any alignment, which makes arrays on the stack slow.
template <std::size_t bytes>
struct Register {
  typedef float type __attribute__((vector_size(bytes)));
};
template <std::size_t bytes>
using Lanes = typename Register<bytes>::type;

inline constexpr int output_tile = 4;                          // side of a tile of results
inline constexpr int input_tile = 6;                           // side of the pixels it depends on
inline constexpr int tile_elements = input_tile * input_tile;  // of a transformed tile

inline constexpr float p = 0.707106781186547524f, q = 1.414213562373095049f;  // the points ±p, ±q
inline constexpr float pp = 0.5f, qq = 2.0f, ppp = p * pp, qqq = q * qq;
inline constexpr float factor_p = -1.0f / 1.5f,
                       factor_q = 1.0f / 6.0f;  // 1 / (2 p² (p² − q²)), 1 / (2 q² (q² − p²))

// Each transform works on one axis; `step` is the stride of that axis.

// Bᵀ: 6 → 6
template <class V>
[[gnu::always_inline]] constexpr void input_transform(V* to, const V* d, std::int64_t step) {
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
[[gnu::always_inline]] constexpr void output_transform(V* to, std::int64_t to_step, const V* m,
                                                       std::int64_t step) {
  const V sum_p = m[step] + m[2 * step], difference_p = m[step] - m[2 * step];
  const V sum_q = m[3 * step] + m[4 * step], difference_q = m[3 * step] - m[4 * step];
  to[0] = m[0] + sum_p + sum_q;
  to[to_step] = p * difference_p + q * difference_q;
  to[2 * to_step] = pp * sum_p + qq * sum_q;
  to[3 * to_step] = ppp * difference_p + qqq * difference_q + m[5 * step];
}

// G: 3 → 6
template <class V>
[[gnu::always_inline]] constexpr void filter_transform(V* to, std::int64_t to_step, const V* g,
                                                       std::int64_t step) {
  const V g0 = g[0], g1 = g[step], g2 = g[2 * step];
  const V even_p = factor_p * (g0 + pp * g2), odd_p = (factor_p * p) * g1;
  const V even_q = factor_q * (g0 + qq * g2), odd_q = (factor_q * q) * g1;
  to[0] = g0;
  to[to_step] = even_p + odd_p;
  to[2 * to_step] = even_p - odd_p;
  to[3 * to_step] = even_q + odd_q;
  to[4 * to_step] = even_q - odd_q;
  to[5 * to_step] = g2;
}

// A: 4 → 6, the transpose of output_transform
template <class V>
[[gnu::always_inline]] constexpr void output_transform_transposed(V* to, std::int64_t to_step, const V* y,
                                                                  std::int64_t step) {
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

// Gᵀ: 6 → 3, the transpose of filter_transform
template <class V>
[[gnu::always_inline]] constexpr void filter_transform_transposed(V* to, std::int64_t to_step, const V* u,
                                                                  std::int64_t step) {
  const V sum_p = factor_p * (u[step] + u[2 * step]), difference_p = factor_p * (u[step] - u[2 * step]);
  const V sum_q = factor_q * (u[3 * step] + u[4 * step]),
          difference_q = factor_q * (u[3 * step] - u[4 * step]);
  to[0] = u[0] + sum_p + sum_q;
  to[to_step] = p * difference_p + q * difference_q;
  to[2 * to_step] = pp * sum_p + qq * sum_q + u[5 * step];
}

}  // namespace tandem::detail::winograd
