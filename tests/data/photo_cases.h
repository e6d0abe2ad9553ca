// Shared by the tests of photographs: folders of small photographs, some unreadable, and the expected images.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/photo_store.h"
#include "tandem/image/decode.h"
#include "tandem/image/encode_png.h"
#include "tests/augment/photo_case.h"
#include "tests/data/loader_cases.h"
#include "tests/image/test_files.h"

namespace tandem {

class PhotoFolder {
 public:
  explicit PhotoFolder(std::size_t count, const std::set<std::size_t>& bad = {}, std::int64_t side = 9)
      : bad_(bad) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const Image photo = noise_photo(side + at % 7, side + at % 11, static_cast<unsigned>(i));
      files.push_back(folder_ / ("photo " + std::to_string(i) + ".png"));
      labels.push_back(static_cast<std::int32_t>(i % 3));
      const std::vector<std::uint8_t> bytes = encode_png(photo);
      // Some bad files are truncated behind a valid header, others are no image at all.
      const std::size_t kept = bad.contains(i) ? (i % 2 == 0 ? bytes.size() / 2 : 3) : bytes.size();
      put_bytes(files.back(), {reinterpret_cast<const char*>(bytes.data()), kept});
    }
  }

  std::shared_ptr<const PhotoStore> store(bool decoded, OnBadImage on_bad = OnBadImage::skip) const {
    return std::make_shared<const PhotoStore>(
        files, labels,
        PhotoStoreOptions{.max_decoded_bytes = decoded ? std::int64_t{1} << 28 : 0, .on_bad_image = on_bad});
  }

  // The expected images, computed from the definitions without a loader.
  std::vector<Loaded> expected_epoch(const BatchPlan& plan, const PhotoRecipe& recipe,
                                     std::int64_t epoch) const {
    const Tensor order = Tensor::empty({plan.positions()}, DType::i32);
    fill_order(plan, epoch, 0, order);
    const std::vector<std::int32_t> samples = order.to_vector<std::int32_t>();
    PhotoScratch scratch;
    std::vector<Loaded> all;
    for (std::size_t position = 0; position < samples.size(); ++position) {
      const auto pass_samples = static_cast<std::size_t>(plan.samples);
      const std::size_t pass = position / pass_samples * pass_samples;
      std::size_t at = position;
      while (plan.replace_unreadable && bad_.contains(static_cast<std::size_t>(samples[at])))
        at = pass + (at + 1) % pass_samples;
      const auto sample = static_cast<std::size_t>(samples[at]);
      Loaded loaded{samples[at], -1,
                    std::vector<std::uint8_t>(static_cast<std::size_t>(3 * recipe.height * recipe.width))};
      if (!bad_.contains(sample)) {
        const Image photo = to_rgb(load_image(files[sample]));
        const RandomKey key{.seed = plan.seed,
                            .epoch = static_cast<std::uint32_t>(epoch),
                            .sample = static_cast<std::uint32_t>(sample)};
        transform_photo(recipe, key, photo, loaded.pixels.data(), scratch);
        loaded.label = labels[sample];
      }
      all.push_back(std::move(loaded));
    }
    return all;
  }

  std::vector<std::filesystem::path> files;
  std::vector<std::int32_t> labels;

 private:
  TempFolder folder_;
  std::set<std::size_t> bad_;
};

// Local positions from `first` to the end of an epoch, block by block.
inline std::vector<Loaded> load_photo_epoch(Loader& loader, const BatchPlan& plan, const PhotoRecipe& recipe,
                                            std::int64_t epoch, std::int64_t first = 0) {
  std::vector<Loaded> all;
  while (first < plan.local_positions()) {
    const LoadedBlock block = loader.acquire(epoch, first);
    append(block, std::int64_t{3} * recipe.height * recipe.width, all);
    first += block.count;
    loader.release(block);
  }
  return all;
}

}  // namespace tandem
