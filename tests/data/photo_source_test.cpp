// Every source of photographs gives the same bytes.
#include "tandem/data/loader/photo_source.h"
#include "tandem/augment/transform.h"

#include <algorithm>

#include "tandem/data/loader/augmented_source.h"
#include "tandem/data/loader/make_source.h"
#include "tests/data/photo_cases.h"
#include "tests/device/to_host.h"

namespace tandem {
namespace {

const PhotoRecipe recipe = Transform::parse("crop, flip, jitter 0.4 0.4 0.4 0.1, erase 0.3", 16).photo();

void expect_epochs(BatchSource& source, const PhotoFolder& folder, const PhotoRecipe& made) {
  const BatchPlan& plan = source.plan();
  const std::int64_t size = source.image_size();
  for (const std::int64_t epoch : {0, 1}) {
    const std::vector<Loaded> expected = folder.expected_epoch(plan, made, epoch);
    for (std::int64_t first = 0; first < plan.positions();) {
      const SourceBlock block = source.next_block(epoch, first, epoch == 0 ? 1 << 20 : plan.batch_size);
      ASSERT_GT(block.count, 0);
      const auto pixels = to_host(block.images, block.image_count * size, source.device());
      const auto samples = to_host(block.samples, block.count, source.device());
      const auto labels = to_host(block.labels, block.count, source.device());
      for (std::int64_t i = 0; i < block.count; ++i) {
        const Loaded& wanted = expected[static_cast<std::size_t>(first + i)];
        ASSERT_EQ(labels[static_cast<std::size_t>(i)], wanted.label) << "position " << first + i;
        const std::uint8_t* found = pixels.data() + samples[static_cast<std::size_t>(i)] * size;
        ASSERT_TRUE(std::equal(wanted.pixels.begin(), wanted.pixels.end(), found))
            << "position " << first + i;
      }
      first += block.count;
    }
  }
}

std::vector<Device> devices() {
  std::vector<Device> all{cpu_device};
  if (cuda_device_count() > 0) all.push_back(cuda_device());
  return all;
}

class PhotoSource : public testing::TestWithParam<bool> {
 protected:
  const PhotoFolder folder{40, GetParam() ? std::set<std::size_t>{5, 17} : std::set<std::size_t>{}};
  const BatchPlan plan{.samples = 40, .batch_size = 6, .seed = 3};
  const BatchPlan in_order{.samples = 40, .batch_size = 6, .shuffle = false, .replace_unreadable = false};
  const BatchPlan stored_order{.samples = 40, .batch_size = 6, .shuffle = false};
  const PhotoRecipe evaluation = evaluation_photo_recipe(16);
};

TEST_P(PhotoSource, HostPrefetcher_GivesTheExpectedBits) {
  for (const bool decoded : {true, false})
    for (const int workers : {0, 2}) {
      HostPrefetcher source(detail::sample_store(folder.store(decoded)), plan, recipe, {.workers = workers});
      expect_epochs(source, folder, recipe);
      EXPECT_EQ(source.skipped().size(), GetParam() ? 2U : 0U);
      HostPrefetcher sequence(detail::sample_store(folder.store(decoded)), in_order, evaluation,
                              {.workers = workers});
      expect_epochs(sequence, folder, evaluation);
    }
}

TEST_P(PhotoSource, DevicePrefetcher_GivesTheExpectedBits) {
  for (const Device device : devices()) {
    DevicePrefetcher source(detail::sample_store(folder.store(false)), plan, recipe, {.workers = 2}, device);
    expect_epochs(source, folder, recipe);
    EXPECT_EQ(source.skipped().size(), GetParam() ? 2U : 0U);
  }
}

TEST_P(PhotoSource, DevicePhotos_GivesTheExpectedImages) {
  for (const Device device : devices()) {
    DevicePhotos source(folder.store(true), plan, recipe, device);
    expect_epochs(source, folder, recipe);
    DevicePhotos sequence(folder.store(true), in_order, evaluation, device);
    expect_epochs(sequence, folder, evaluation);
    DevicePhotos unshuffled(folder.store(true), stored_order, recipe, device);
    expect_epochs(unshuffled, folder, recipe);
    const std::vector<SkippedSample> skipped = source.skipped();
    ASSERT_EQ(skipped.size(), GetParam() ? 2U : 0U);
    if (GetParam()) {
      EXPECT_EQ(skipped[0].name, folder.files[5].string());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, PhotoSource, testing::Bool(), [](const testing::TestParamInfo<bool>& bad) {
  return bad.param ? "SomeBad" : "AllGood";
});

TEST(PhotoSourceFor, Device_SelectsTheSource) {
  const PhotoFolder folder(8);
  const BatchPlan plan{.samples = 8, .batch_size = 4};
  const LoaderOptions options{.workers = 2};
  for (const Device device : devices())
    for (const bool decoded : {true, false}) {
      const auto source =
          make_source(detail::sample_store(folder.store(decoded)), plan, recipe, device, options);
      EXPECT_EQ(source->device(), device);
      const std::string workers = "by 2 threads on the CPU";
      EXPECT_EQ(source->description(), !device.is_cuda() ? workers
                                       : decoded         ? "on " + device.to_string()
                                                         : workers + ", copied to " + device.to_string());
    }
  const auto without_workers = [&](bool decoded) {
    return make_source(detail::sample_store(folder.store(decoded)), plan, recipe, cpu_device, {});
  };
  EXPECT_NE(dynamic_cast<DevicePhotos*>(without_workers(true).get()), nullptr);
  EXPECT_NE(dynamic_cast<HostPrefetcher*>(without_workers(false).get()), nullptr);
}

}  // namespace
}  // namespace tandem
