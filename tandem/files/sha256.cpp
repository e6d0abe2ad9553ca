#include "tandem/files/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "tandem/core/check.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && !defined(__clang__)  // clang 14 has no per-function intrinsics
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tandem {
namespace {

using Word = std::uint32_t;

alignas(16) constexpr Word round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

Word big_endian_word(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

inline void round(Word a, Word b, Word c, Word& d, Word e, Word f, Word g, Word& h, Word added) {
  const Word t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + (g ^ (e & (f ^ g))) + added;
  d += t1;
  h = t1 + (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) | (c & (a | b)));
}

using State = std::array<Word, 8>;

void compress_portable(State& state, const unsigned char* blocks, std::size_t count) {
  for (; count > 0; --count, blocks += 64) {
    Word w[64];
    for (int i = 0; i < 16; ++i) w[i] = big_endian_word(blocks + 4 * i);
    for (int i = 16; i < 64; ++i) {
      const Word s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const Word s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    // After eight rounds every variable has its own role again, so that none is moved.
    for (int i = 0; i < 64; i += 8) {
      round(a, b, c, d, e, f, g, h, round_constants[i] + w[i]);
      round(h, a, b, c, d, e, f, g, round_constants[i + 1] + w[i + 1]);
      round(g, h, a, b, c, d, e, f, round_constants[i + 2] + w[i + 2]);
      round(f, g, h, a, b, c, d, e, round_constants[i + 3] + w[i + 3]);
      round(e, f, g, h, a, b, c, d, round_constants[i + 4] + w[i + 4]);
      round(d, e, f, g, h, a, b, c, round_constants[i + 5] + w[i + 5]);
      round(c, d, e, f, g, h, a, b, round_constants[i + 6] + w[i + 6]);
      round(b, c, d, e, f, g, h, a, round_constants[i + 7] + w[i + 7]);
    }
    const State added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
  }
}

// Five times faster on CPUs with SHA instructions.
#if defined(__x86_64__)
bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0 &&
         __builtin_cpu_supports("sse4.1");
}

// The instructions use the state as (a, b, e, f) and (c, d, g, h), highest first.
[[gnu::target("sha,sse4.1")]] void compress_fast(State& state, const unsigned char* blocks,
                                                 std::size_t count) {
  auto* const words = reinterpret_cast<__m128i*>(state.data());
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; --count, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks) + i), big_endian);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      const __m128i &next = w[(i + 1) % 4], &third = w[(i + 2) % 4], &last = w[(i + 3) % 4];
      const __m128i added =
          _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(round_constants) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
      if (i < 12)
        now = _mm_sha256msg2_epu32(
            _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, third, 4)), last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}
#elif defined(__aarch64__) && !defined(__clang__)  // clang 14 has no per-function intrinsics
bool has_sha_instructions() {
  return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
}

[[gnu::target("+crypto")]] void compress_fast(State& state, const unsigned char* blocks, std::size_t count) {
  uint32x4_t abcd = vld1q_u32(state.data()), efgh = vld1q_u32(state.data() + 4);
  for (; count > 0; --count, blocks += 64) {
    const uint32x4_t abcd_before = abcd, efgh_before = efgh;
    uint32x4_t w[4];
    for (int i = 0; i < 4; ++i) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(blocks + 16 * i)));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      uint32x4_t& now = w[i % 4];
      const uint32x4_t added = vaddq_u32(now, vld1q_u32(round_constants + 4 * i));
      uint32x4_t abcd_now = abcd;
      asm("" : "+w"(abcd_now));  // keeps the register copy off the critical path of the next round
      abcd = vsha256hq_u32(abcd, efgh, added);
      efgh = vsha256h2q_u32(efgh, abcd_now, added);
      if (i < 12) now = vsha256su1q_u32(vsha256su0q_u32(now, w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(state.data(), abcd);
  vst1q_u32(state.data() + 4, efgh);
}
#endif

void compress(State& state, const unsigned char* blocks, std::size_t count) {
#if defined(__x86_64__) || (defined(__aarch64__) && !defined(__clang__))
  static const bool fast = has_sha_instructions();
  if (fast) return compress_fast(state, blocks, count);
#endif
  compress_portable(state, blocks, count);
}

}  // namespace

void Sha256::update(std::string_view bytes) {
  length_ += bytes.size();
  if (buffered_ > 0) {
    const std::size_t taken = std::min(bytes.size(), block_.size() - buffered_);
    std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(buffered_));
    buffered_ += taken;
    bytes.remove_prefix(taken);
    if (buffered_ < block_.size()) return;
    compress(state_, block_.data(), 1);
    buffered_ = 0;
  }
  const std::size_t whole = bytes.size() / 64;
  compress(state_, reinterpret_cast<const unsigned char*>(bytes.data()), whole);
  bytes.remove_prefix(whole * 64);
  std::copy(bytes.begin(), bytes.end(), block_.begin());
  buffered_ = bytes.size();
}

std::string Sha256::hex_digest() {
  const std::uint64_t bits = length_ * 8;
  std::string tail(buffered_ < 56 ? 64 - buffered_ : 128 - buffered_, '\0');
  tail[0] = static_cast<char>(0x80);
  for (std::size_t i = 0; i < 8; ++i) tail[tail.size() - 1 - i] = static_cast<char>(bits >> (8 * i) & 0xFF);
  update(tail);
  std::string digest;
  for (const std::uint32_t word : state_) digest += fmt::format("{:08x}", word);
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex_digest();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  check(!std::filesystem::is_directory(path), "[sha256] {}: expected a file, got a folder", path.string());
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), "[sha256] {}: cannot be opened: {}", path.string(), std::strerror(errno));
  std::vector<char> buffer(std::size_t{1} << 18);
  Sha256 hash;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.update({buffer.data(), static_cast<std::size_t>(file.gcount())});
  }
  check(!file.bad(), "[sha256] {}: cannot be read", path.string());
  return hash.hex_digest();
}

}  // namespace tandem
