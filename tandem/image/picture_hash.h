// Perceptual hashes: copies of a picture that were resized, compressed again or cropped by about 2 % have
// hashes of a small Hamming distance. Whether two pictures with such hashes are the same is decided by
// is_same_picture() of same_picture.h.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "tandem/image/image.h"

namespace tandem {

// The signs of 241 differences of brightness between neighboring parts of the picture, in 14 parts of 17 or
// 18 bits. Each part has bits from everywhere in the picture, so that a plain background does not make a part
// the same in many pictures.
struct PictureHash {
  static constexpr int parts = 14, part_bits = 18;

  std::array<std::uint64_t, 4> words{};

  std::uint32_t part(int i) const {
    const int bit = i * part_bits;
    const auto word = static_cast<std::size_t>(bit / 64);
    const int shift = bit % 64;
    std::uint64_t value = words[word] >> shift;
    if (shift > 64 - part_bits) value |= words[word + 1] << (64 - shift);
    return static_cast<std::uint32_t>(value & ((1U << part_bits) - 1));
  }

  auto operator<=>(const PictureHash&) const = default;
};

inline int hamming_distance(const PictureHash& a, const PictureHash& b) {
  int distance = 0;
  for (std::size_t i = 0; i < a.words.size(); ++i) distance += std::popcount(a.words[i] ^ b.words[i]);
  return distance;
}

// The largest distance of copies. Two hashes within it have a part in which they differ by at most one bit.
inline constexpr int max_copy_distance = 2 * PictureHash::parts - 1;

// Hashes of the whole picture (the first one) and of parts of it that lack 1 to 2 % on some sides.
using PictureHashes = std::array<PictureHash, 6>;

// Of a gray or RGB image of any size; the result hardly depends on the size. Throws Error for an empty image.
PictureHashes hash_picture(const Image& image);
// The same for an image that was decoded at a reduced scale: the picture ends inside of its last pixels, at
// this height and width.
PictureHashes hash_picture(const Image& image, double height, double width);

}  // namespace tandem
