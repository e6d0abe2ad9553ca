// Shared by the loader's tests: small image sets, a recipe, and the expected images.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tandem/augment/augment.h"
#include "tandem/core/philox.h"
#include "tandem/data/loader/loader.h"

namespace tandem {

// Samples at which the test program's workers misbehave; other sets are smaller. The flaky one kills its
// worker as long as the file named by this variable is not empty, and shortens the file by one byte.
inline constexpr std::int32_t flaky_sample = 700, crashing_sample = 701, throwing_sample = 702;
inline constexpr const char* flaky_file = "TANDEM_TEST_FLAKY";

inline ImageSet small_set(std::int64_t count, std::int64_t height = 12, std::int64_t width = 9,
                          std::int64_t channels = 1) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * height * width * channels));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(random_block(3, 0, i).word[0]);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  return {.images = Tensor::from(pixels, {count, height, width, channels}),
          .labels = Tensor::from(labels, {count}),
          .classes = std::vector<std::string>(10, "class")};
}

inline Recipe test_recipe() {
  return compose({random_rotate({-20, 20}), random_shift({-2, 2}, {-1, 1}), random_noise({0, 0.2})});
}

// An image from a loader.
struct Loaded {
  std::int32_t sample = 0, label = 0;
  std::vector<std::uint8_t> pixels;

  friend bool operator==(const Loaded&, const Loaded&) = default;
};

inline void append(const LoadedBlock& block, std::int64_t image_bytes, std::vector<Loaded>& to) {
  for (std::int64_t i = 0; i < block.count; ++i)
    to.push_back(
        {block.samples[i], block.labels[i],
         std::vector<std::uint8_t>(block.images + i * image_bytes, block.images + (i + 1) * image_bytes)});
}

// Local positions from `first` to the end of an epoch, block by block.
inline std::vector<Loaded> load_epoch(Loader& loader, const ImageSet& set, const BatchPlan& plan,
                                      std::int64_t epoch, std::int64_t first = 0) {
  std::vector<Loaded> all;
  while (first < plan.local_positions()) {
    const LoadedBlock block = loader.acquire(epoch, first);
    EXPECT_EQ(block.epoch, epoch);
    EXPECT_EQ(block.first, first);
    EXPECT_GT(block.count, 0);
    append(block, set.image_size(), all);
    first += block.count;
    loader.release(block);
  }
  return all;
}

// The same, computed from the definitions without a loader.
inline std::vector<Loaded> expected_epoch(const ImageSet& set, const BatchPlan& plan, const Recipe& recipe,
                                          std::int64_t epoch) {
  const Tensor order = Tensor::empty({plan.positions()}, DType::i32),
               keys = Tensor::empty(order.shape(), DType::i32);
  fill_order(plan, epoch, 0, order);
  fill_keys(plan, epoch, 0, keys);
  const ImageSize size{static_cast<int>(set.images.size(1)), static_cast<int>(set.images.size(2)),
                       static_cast<int>(set.images.size(3))};
  AugmentScratch scratch;
  std::vector<Loaded> all;
  for (std::int64_t i = 0; i < plan.positions(); ++i) {
    const std::int32_t sample = order.data<std::int32_t>()[i];
    const std::uint8_t* in = set.images.data<std::uint8_t>() + sample * size.bytes();
    Loaded loaded{sample, set.labels.data<std::int32_t>()[sample],
                  std::vector<std::uint8_t>(in, in + size.bytes())};
    const RandomKey key{.seed = plan.seed,
                        .epoch = static_cast<std::uint32_t>(epoch),
                        .sample = static_cast<std::uint32_t>(keys.data<std::int32_t>()[i])};
    if (!recipe.empty()) augment_image(recipe, size, key, in, loaded.pixels.data(), scratch);
    all.push_back(std::move(loaded));
  }
  return all;
}

}  // namespace tandem
