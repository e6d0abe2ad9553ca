#include "tandem/core/philox.h"

#include "tandem/core/simd.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the operand its own AVX-512 intrinsics leave undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace tandem {
namespace {

// The rounds of one block depend on each other, so several independent chains are interleaved to hide the
// latency of the multiplications. Compilers vectorize over the lanes.
template <std::uint32_t lanes, std::uint32_t chains>
[[gnu::always_inline]] inline void run_chains(const Words4& counter, std::uint64_t key,
                                              std::uint32_t* __restrict words) {
  const Words4 first = counter;
  for (std::uint32_t lane = 0; lane < lanes; ++lane)
#pragma GCC unroll 4
    for (std::uint32_t chain = 0; chain < chains; ++chain) {
      const std::uint32_t block = chain * lanes + lane;
      const Words4 four = philox({{first.word[0] + block, first.word[1], first.word[2], first.word[3]}}, key);
      for (std::uint32_t k = 0; k < 4; ++k) words[4 * block + k] = four.word[k];
    }
}

void run_portable(Words4 counter, std::uint64_t key, std::uint32_t count, std::uint32_t* words) {
  static_assert(philox_group == 16);
  for (std::uint32_t done = 0; done < count; done += philox_group) {
    run_chains<4, 4>(counter, key, words + 4 * done);
    counter.word[0] += philox_group;
  }
}

#if defined(__x86_64__)
// Each word is in the lower half of a 64-bit lane. The upper halves are undefined: _mm256_mul_epu32 does not
// read them. Written with intrinsics because compilers do not use that instruction and multiply 64 bits
// instead.
struct FourBlocks {
  __m256i c0, c1, c2, c3;
};
struct EightBlocks {
  __m512i c0, c1, c2, c3;
};

[[gnu::target("avx2")]] inline __m256i broadcast4(std::uint32_t word) {
  return _mm256_set1_epi64x(std::int64_t{word});
}

[[gnu::target("avx2")]] void run_avx2_blocks(const Words4& counter, std::uint64_t key, std::uint32_t count,
                                             std::uint32_t* words) {
  constexpr int chains = 4;
  const __m256i factor0 = broadcast4(0xD2511F53u), factor1 = broadcast4(0xCD9E8D57u);
  for (std::uint32_t done = 0; done < count; done += philox_group) {
    FourBlocks lanes[chains];
#pragma GCC unroll 4
    for (int i = 0; i < chains; ++i) {
      const std::uint32_t first = counter.word[0] + done + 4 * static_cast<std::uint32_t>(i);
      lanes[i] = {_mm256_add_epi64(broadcast4(first), _mm256_setr_epi64x(0, 1, 2, 3)),
                  broadcast4(counter.word[1]), broadcast4(counter.word[2]), broadcast4(counter.word[3])};
    }
    auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m256i keys0 = broadcast4(key0), keys1 = broadcast4(key1);
#pragma GCC unroll 4
      for (auto& lane : lanes) {
        const __m256i product0 = _mm256_mul_epu32(lane.c0, factor0);
        const __m256i product1 = _mm256_mul_epu32(lane.c2, factor1);
        lane.c0 = _mm256_xor_si256(_mm256_srli_epi64(product1, 32), _mm256_xor_si256(lane.c1, keys0));
        lane.c1 = product1;
        lane.c2 = _mm256_xor_si256(_mm256_srli_epi64(product0, 32), _mm256_xor_si256(lane.c3, keys1));
        lane.c3 = product0;
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    auto* to = reinterpret_cast<__m256i*>(words + 4 * done);
#pragma GCC unroll 4
    for (const auto& lane : lanes) {
      const __m256i low = _mm256_blend_epi32(lane.c0, _mm256_slli_epi64(lane.c1, 32), 0xAA);
      const __m256i high = _mm256_blend_epi32(lane.c2, _mm256_slli_epi64(lane.c3, 32), 0xAA);
      const __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
      _mm256_storeu_si256(to++, _mm256_permute2x128_si256(even, odd, 0x20));
      _mm256_storeu_si256(to++, _mm256_permute2x128_si256(even, odd, 0x31));
    }
  }
}

[[gnu::target("avx512f")]] inline __m512i broadcast8(std::uint32_t word) {
  return _mm512_set1_epi64(std::int64_t{word});
}

// The same with eight blocks per vector. One instruction computes the xor of three words.
[[gnu::target("avx512f")]] void run_avx512_blocks(const Words4& counter, std::uint64_t key,
                                                  std::uint32_t count, std::uint32_t* words) {
  constexpr int chains = 2, xor_of_three = 0x96;
  const __m512i factor0 = broadcast8(0xD2511F53u), factor1 = broadcast8(0xCD9E8D57u);
  const __m512i lane_index = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  const __m512i first_four = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i last_four = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (std::uint32_t done = 0; done < count; done += philox_group) {
    EightBlocks lanes[chains];
#pragma GCC unroll 2
    for (int i = 0; i < chains; ++i) {
      const std::uint32_t first = counter.word[0] + done + 8 * static_cast<std::uint32_t>(i);
      lanes[i] = {_mm512_add_epi64(broadcast8(first), lane_index), broadcast8(counter.word[1]),
                  broadcast8(counter.word[2]), broadcast8(counter.word[3])};
    }
    auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m512i keys0 = broadcast8(key0), keys1 = broadcast8(key1);
#pragma GCC unroll 2
      for (auto& lane : lanes) {
        const __m512i product0 = _mm512_mul_epu32(lane.c0, factor0);
        const __m512i product1 = _mm512_mul_epu32(lane.c2, factor1);
        lane.c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(product1, 32), lane.c1, keys0, xor_of_three);
        lane.c1 = product1;
        lane.c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(product0, 32), lane.c3, keys1, xor_of_three);
        lane.c3 = product0;
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    std::uint32_t* to = words + 4 * done;
#pragma GCC unroll 2
    for (const auto& lane : lanes) {
      const __m512i low = _mm512_mask_blend_epi32(0xAAAA, lane.c0, _mm512_slli_epi64(lane.c1, 32));
      const __m512i high = _mm512_mask_blend_epi32(0xAAAA, lane.c2, _mm512_slli_epi64(lane.c3, 32));
      const __m512i even = _mm512_unpacklo_epi64(low, high), odd = _mm512_unpackhi_epi64(low, high);
      _mm512_storeu_si512(to, _mm512_permutex2var_epi64(even, first_four, odd));
      _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi64(even, last_four, odd));
      to += 32;
    }
  }
}
#endif

}  // namespace

void philox_blocks(const Words4& counter, std::uint64_t key, std::uint32_t count, std::uint32_t* words) {
#if defined(__x86_64__)
  if (simd_level() == SimdLevel::avx512) return run_avx512_blocks(counter, key, count, words);
  if (simd_level() == SimdLevel::avx2) return run_avx2_blocks(counter, key, count, words);
#endif
  run_portable(counter, key, count, words);
}

}  // namespace tandem
