#include "tandem/study/batch_hash.h"

#include <algorithm>
#include <string_view>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/files/sha256.h"

namespace tandem {
namespace {

template <class T>
std::string_view bytes_of(const T* data, std::int64_t count) {
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(count) * sizeof(T)};
}

}  // namespace

void BatchHashes::add(const HostBlock& block) {
  expect(block.first % plan_.batch_size == 0 &&
         (block.count % plan_.batch_size == 0 || block.first + block.count == plan_.positions()));
  const std::int64_t batches = (block.count + plan_.batch_size - 1) / plan_.batch_size;
  const std::size_t before = hashes_.size();
  hashes_.resize(before + static_cast<std::size_t>(batches));
  parallel_for(batches, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t offset = i * plan_.batch_size;
      const std::int64_t count = std::min(plan_.batch_size, block.count - offset);
      Sha256 hash;
      hash.update(bytes_of(block.images + offset * image_size_, count * image_size_));
      hash.update(bytes_of(block.labels + offset, count));
      hash.update(bytes_of(block.samples + offset, count));
      hashes_[before + static_cast<std::size_t>(i)] = hash.hex_digest();
    }
  });
  images_ += block.count;
}

void BatchHashes::add(Loader& loader, const PositionRange& range) {
  for (std::int64_t first = range.begin; first < range.end;) {
    const LoadedBlock block = loader.acquire(range.epoch, first);
    const std::int64_t count = std::min(block.count, range.end - first);
    add({range.epoch, first, count, block.images, block.samples, block.labels});
    loader.release(block);
    first += count;
  }
}

std::string BatchHashes::combined() const {
  Sha256 hash;
  for (const std::string& batch : hashes_) hash.update(batch);
  return hash.hex_digest();
}

std::int64_t first_difference(const std::vector<std::string>& expected, const std::vector<std::string>& got) {
  const auto [a, b] = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end());
  return a == expected.end() && b == got.end() ? -1 : a - expected.begin();
}

}  // namespace tandem
