#include "tandem/study/check/hash_index.h"

#include <algorithm>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"

namespace tandem {
namespace {

bool is_near(const PictureHash& a, const PictureHash& b, int part) {
  return std::popcount(a.part(part) ^ b.part(part)) <= 1;
}

// Whether a part before this one has found the pair already.
bool is_near_before(const PictureHash& a, const PictureHash& b, int part) {
  for (int i = 0; i < part; ++i)
    if (is_near(a, b, i)) return true;
  return false;
}

}  // namespace

HashIndex::HashIndex(std::span<const PictureHash> hashes) : hashes_(hashes), parts_(PictureHash::parts) {
  expect(hashes.size() < std::numeric_limits<std::uint32_t>::max());
  parallel_for(PictureHash::parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<int>(begin); i < end; ++i) {
      auto& [begins, entries] = parts_[static_cast<std::size_t>(i)];
      begins.resize((std::size_t{1} << PictureHash::part_bits) + 1);
      entries.resize(hashes_.size());
      for (const PictureHash& hash : hashes_) ++begins[hash.part(i) + 1];
      for (std::size_t value = 1; value < begins.size(); ++value) begins[value] += begins[value - 1];
      // Filling moves each begin to the end of its range; they are moved back afterwards.
      for (std::size_t at = 0; at < hashes_.size(); ++at)
        entries[begins[hashes_[at].part(i)]++] = static_cast<std::uint32_t>(at);
      std::copy_backward(begins.begin(), begins.end() - 1, begins.end());
      begins[0] = 0;
    }
  });
}

bool HashIndex::find_in(int part, const PictureHash& hash, std::uint32_t value, std::size_t limit,
                        std::vector<std::uint32_t>& found) const {
  const auto& [begins, entries] = parts_[static_cast<std::size_t>(part)];
  for (std::uint32_t at = begins[value]; at < begins[value + 1]; ++at) {
    const PictureHash& other = hashes_[entries[at]];
    if (hamming_distance(hash, other) > max_copy_distance || is_near_before(hash, other, part)) continue;
    found.push_back(entries[at]);
    if (found.size() >= limit) return false;
  }
  return true;
}

bool HashIndex::find(const PictureHash& hash, std::size_t limit, std::vector<std::uint32_t>& found) const {
  limit += found.size();
  for (int part = 0; part < PictureHash::parts; ++part) {
    const std::uint32_t value = hash.part(part);
    if (!find_in(part, hash, value, limit, found)) return false;
    for (int bit = 0; bit < PictureHash::part_bits; ++bit)
      if (!find_in(part, hash, value ^ (1U << bit), limit, found)) return false;
  }
  return true;
}

}  // namespace tandem
