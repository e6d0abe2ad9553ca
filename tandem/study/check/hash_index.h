// All hashes near a hash, without comparing with each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/image/picture_hash.h"

namespace tandem {

// Multi-index hashing (Norouzi, Punjani and Fleet 2012): two hashes within max_copy_distance have a part in
// which they differ by at most one bit, so only hashes with such a part are compared.
class HashIndex {
 public:
  // The hashes must outlive the index and be fewer than 2³². 56 bytes each, and 15 MB.
  explicit HashIndex(std::span<const PictureHash> hashes);

  // Appends the indices of the hashes within max_copy_distance, each once, in no order. Stops when `limit`
  // have been found, and returns false then: there may be more.
  bool find(const PictureHash& hash, std::size_t limit, std::vector<std::uint32_t>& found) const;

 private:
  // The hashes that have each value of a part: entries[begins[value]] to entries[begins[value + 1] − 1].
  struct Part {
    std::vector<std::uint32_t> begins, entries;
  };
  bool find_in(int part, const PictureHash& hash, std::uint32_t value, std::size_t limit,
               std::vector<std::uint32_t>& found) const;

  std::span<const PictureHash> hashes_;
  std::vector<Part> parts_;
};

}  // namespace tandem
