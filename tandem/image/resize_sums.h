// Weighted sums of bytes, one vector of adjacent bytes at a time: the arithmetic of a resize, exact in 32
// bits. Taps are added in groups of two on x86, which multiplies two pairs of 16 bits in one instruction. The
// last group is padded with a tap of weight 0.
#pragma once

#include <cstdint>
#include <utility>

#include "tandem/core/simd.h"
#include "tandem/image/resize_weights.h"

namespace tandem::detail {

// Interleaves the elements of a and b, of the first or second half of each 16 bytes. This is one instruction,
// where compilers would otherwise convert bytes one at a time. (It writes to `out`, because the ABI for
// returning vectors depends on the enabled instruction set.)
template <int half, class T, size_t bytes>
[[gnu::always_inline]] inline void interleave(const Vector<T, bytes>& a, const Vector<T, bytes>& b,
                                              Vector<T, bytes>& out) {
  constexpr int count = bytes / sizeof(T), group = 16 / sizeof(T);
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    out = __builtin_shufflevector(
        a, b, (i / group * group + half * group / 2 + i % group / 2 + (i % 2 == 0 ? 0 : count))...);
  }
  (std::make_integer_sequence<int, count>());
}

#if defined(__x86_64__)

constexpr int resize_tap_group = 2;

// Converts the weights of a group to the layout of PairSums, in place: a pair of their signed lower 16 bits,
// then a pair of the remaining upper bits.
inline void group_weights(int32_t* weights) {
  const auto low0 = int16_t(weights[0]), low1 = int16_t(weights[1]);
  const auto pair = [](int32_t a, int32_t b) { return int32_t(uint32_t(uint16_t(a)) | uint32_t(b) << 16); };
  const int32_t high = pair((weights[0] - low0) >> 16, (weights[1] - low1) >> 16);
  weights[0] = pair(low0, low1);
  weights[1] = high;
}

// `fused` uses AVX-512 VNNI. Instructions are written as inline assembly, because the functions of
// <immintrin.h> cannot be inlined into templates without a target attribute. Each instruction writes to a
// local variable: members would be kept in memory.
template <size_t bytes, bool fused>
class PairSums {
 public:
  static constexpr int64_t lanes = bytes;
  static constexpr int max_vectors = 1;  // how many sums the registers can hold

  [[gnu::always_inline]] PairSums() {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) low_[i] = Ints{} + (1 << (resize_weight_bits - 1)), high_[i] = Ints{};
  }

  // tap(i) is the address of tap i of the group.
  template <class Tap>
  [[gnu::always_inline]] void add(const Tap& tap, const int32_t* weights) {
    const Bytes a = *reinterpret_cast<const Bytes*>(tap(0)), b = *reinterpret_cast<const Bytes*>(tap(1));
    const Ints low = Ints{} + weights[0], high = Ints{} + weights[1];
    Bytes halves[2];
    interleave<0, uint8_t, bytes>(a, b, halves[0]);
    interleave<1, uint8_t, bytes>(a, b, halves[1]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      Bytes quarters[2];
      interleave<0, uint8_t, bytes>(halves[i], Bytes{}, quarters[0]);
      interleave<1, uint8_t, bytes>(halves[i], Bytes{}, quarters[1]);
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        add_products(reinterpret_cast<const Ints&>(quarters[k]), low, low_[2 * i + k]);
        add_products(reinterpret_cast<const Ints&>(quarters[k]), high, high_[2 * i + k]);
      }
    }
  }

  // The upper half of a sum fits 16 bits, and the last instruction clips.
  [[gnu::always_inline]] void store(uint8_t* to) const {
    Words halves[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const Ints a = high_[2 * i] + (low_[2 * i] >> 16), b = high_[2 * i + 1] + (low_[2 * i + 1] >> 16);
      Words both;
      if constexpr (bytes == 16)
        asm("packssdw %2, %0" : "=x"(both) : "0"(a), "x"(b));
      else
        asm("vpackssdw %2, %1, %0" : "=v"(both) : "v"(a), "v"(b));
      halves[i] = both >> (resize_weight_bits - 16);
    }
    Words levels;
    if constexpr (bytes == 16)
      asm("packuswb %2, %0" : "=x"(levels) : "0"(halves[0]), "x"(halves[1]));
    else
      asm("vpackuswb %2, %1, %0" : "=v"(levels) : "v"(halves[0]), "v"(halves[1]));
    *reinterpret_cast<Bytes*>(to) = reinterpret_cast<const Bytes&>(levels);
  }

 private:
  using Bytes = Vector<uint8_t, bytes>;
  using Words = Vector<int16_t, bytes>;
  using Ints = Vector<int32_t, bytes>;

  // Adds the products of both 16-bit halves to each 32-bit sum.
  [[gnu::always_inline]] static void add_products(const Ints& a, const Ints& b, Ints& sums) {
    if constexpr (fused) {
      Ints sum = sums;
      asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
      sums = sum;
    } else {
      Ints products;
      if constexpr (bytes == 16)
        asm("pmaddwd %2, %0" : "=x"(products) : "0"(a), "x"(b));
      else
        asm("vpmaddwd %2, %1, %0" : "=v"(products) : "v"(a), "v"(b));
      sums += products;
    }
  }

  Ints low_[4], high_[4];
};

#else

constexpr int resize_tap_group = 1;

inline void group_weights(int32_t*) {}

// Widens the bytes of a vector to 32 bits by shuffles (little-endian).
template <size_t bytes, bool clip>
class WideSums {
 public:
  static constexpr int64_t lanes = bytes;
  static constexpr int max_vectors = 4;

  [[gnu::always_inline]] WideSums() {
#pragma GCC unroll 4
    for (Ints& part : parts_) part = Ints{} + (1 << (resize_weight_bits - 1));
  }

  template <class Tap>
  [[gnu::always_inline]] void add(const Tap& tap, const int32_t* weight) {
    const Bytes values = *reinterpret_cast<const Bytes*>(tap(0));
    Bytes halves[2];
    interleave<0, uint8_t, bytes>(values, Bytes{}, halves[0]);
    interleave<1, uint8_t, bytes>(values, Bytes{}, halves[1]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      Words quarters[2];
      interleave<0, int16_t, bytes>(reinterpret_cast<const Words&>(halves[i]), Words{}, quarters[0]);
      interleave<1, int16_t, bytes>(reinterpret_cast<const Words&>(halves[i]), Words{}, quarters[1]);
      parts_[2 * i] += reinterpret_cast<Ints>(quarters[0]) * *weight;
      parts_[2 * i + 1] += reinterpret_cast<Ints>(quarters[1]) * *weight;
    }
  }

  // Levels are clipped by their sign bits, because compilers split comparisons of wide vectors into scalar
  // ones.
  [[gnu::always_inline]] void store(uint8_t* to) const {
    Words halves[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      even_elements<int16_t>(reinterpret_cast<Words>(parts_[2 * i] >> resize_weight_bits),
                             reinterpret_cast<Words>(parts_[2 * i + 1] >> resize_weight_bits), halves[i]);
      if constexpr (clip) {
        const Words below = 255 - (halves[i] & ~(halves[i] >> 15));
        halves[i] = 255 - (below & ~(below >> 15));
      }
    }
    Bytes levels;
    even_elements<uint8_t>(reinterpret_cast<Bytes>(halves[0]), reinterpret_cast<Bytes>(halves[1]), levels);
    *reinterpret_cast<Bytes*>(to) = levels;
  }

 private:
  using Bytes = Vector<uint8_t, bytes>;
  using Words = Vector<int16_t, bytes>;
  using Ints = Vector<int32_t, bytes>;

  // The even elements of a, then of b, of each 16 bytes.
  template <class T>
  [[gnu::always_inline]] static void even_elements(const Vector<T, bytes>& a, const Vector<T, bytes>& b,
                                                   Vector<T, bytes>& out) {
    constexpr int count = bytes / sizeof(T), group = 16 / sizeof(T);
    [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
      out = __builtin_shufflevector(
          a, b, (i / group * group + 2 * i % group + (i % group < group / 2 ? 0 : count))...);
    }
    (std::make_integer_sequence<int, count>());
  }

  Ints parts_[4];
};

#endif

}  // namespace tandem::detail
