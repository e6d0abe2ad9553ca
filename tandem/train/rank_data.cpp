#include "tandem/train/rank_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "tandem/files/packed_path.h"
#include "tandem/files/sha256.h"
#include "tandem/train/ranks.h"

namespace tandem {
namespace {

// Reading the sizes of more files would take long where they are on a server.
constexpr std::int64_t max_files = 4096;

std::pair<std::string, std::string> training_fingerprint(const TrainingImages& train) {
  if (const auto* const images = dynamic_cast<const ImageDataset*>(train.dataset.get()))
    return {"the training images", hash_text(images->images().images)};
  const std::int64_t stride = (train.count() + max_files - 1) / max_files;
  Sha256 sizes;
  for (std::int64_t i = 0; i < train.count(); i += stride) {
    constexpr std::uint64_t not_a_file = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t bytes = bytes_in_file(train.dataset->describe(i)).value_or(not_a_file);
    sizes.update(std::as_bytes(std::span(&bytes, 1)));
  }
  return {"the sizes of the training photographs", sizes.hex_digest()};
}

std::string describe(const Place& place) {
  return fmt::format("{} (host {})", place.rank, place.host);
}

}  // namespace

NamedTexts image_fingerprints(const TrainingData& data) {
  return {training_fingerprint(data.train),
          {"the validation images", hash_text(data.validation.images)},
          {"the test images", hash_text(data.test.images)}};
}

void check_same_data(Group& group, const DataList& list, const NamedTexts& fingerprints) {
  if (group.place().size == 1) return;
  const std::vector<std::string> digests = gather_texts(group, list.digest());
  const auto other = std::ranges::find_if(digests, [&](const std::string& one) { return one != digests[0]; });
  if (other != digests.end()) {
    const DataList of_first = parse_data_list(broadcast_text(group, list.to_text()), "data of rank 0");
    const std::vector<std::string> differences = gather_texts(group, first_difference(of_first, list));
    const auto rank = static_cast<std::size_t>(other - digests.begin());
    fail_together(group, fmt::format("[train] ranks {} and {} have different data; on rank {}: {}",
                                     describe(group.places()[0]), describe(group.places()[rank]), rank,
                                     differences[rank]));
  }
  check_ranks_agree(group, fingerprints);
}

}  // namespace tandem
