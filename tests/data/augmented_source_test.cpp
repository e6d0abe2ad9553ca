// Every source of augmented images gives the bytes of augment_batch().
#include "tandem/data/loader/augmented_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tandem/augment/augment.h"
#include "tandem/data/synthetic/digits.h"
#include "tests/device/to_host.h"

namespace tandem {
namespace {

constexpr std::int64_t samples = 700;  // more than one block of the loader
const BatchPlan plan{.samples = samples, .batch_size = 16, .seed = 5};

const ImageSet& images() {
  static const ImageSet set = make_digits(samples, 3);
  return set;
}

struct Images {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  friend bool operator==(const Images&, const Images&) = default;
};

void append(Images& all, const SourceBlock& block, const BatchSource& source) {
  const std::int64_t size = source.image_size();
  const auto pixels = to_host(block.images, block.image_count * size, source.device());
  for (const std::int32_t sample : to_host(block.samples, block.count, source.device()))
    all.pixels.insert(all.pixels.end(), pixels.begin() + sample * size, pixels.begin() + (sample + 1) * size);
  for (const std::int32_t label : to_host(block.labels, block.count, source.device()))
    all.labels.push_back(label);
}

// Positions from `first` to the end of an epoch, at most `max_count` at a time.
Images rest_of(BatchSource& source, std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
  Images all;
  while (first < samples) {
    const SourceBlock block = source.next_block(epoch, first, max_count);
    EXPECT_GT(block.count, 0);
    EXPECT_LE(block.count, max_count);
    EXPECT_TRUE(block.count % plan.batch_size == 0 || first + block.count == samples);
    append(all, block, source);
    first += block.count;
  }
  return all;
}

Images expected(std::int64_t epoch, std::int64_t first) {
  const Tensor order = Tensor::empty({samples - first}, DType::i32);
  const Tensor labels = Tensor::empty({samples - first}, DType::i32);
  fill_block(plan, epoch, first, images().labels, order, labels);
  const Tensor out = Tensor::empty({samples - first, 28, 28, 1}, DType::u8);
  augment_batch(digits_recipe(), plan.seed, epoch, images().images, order, out);
  return {out.to_vector<std::uint8_t>(), labels.to_vector<std::int32_t>()};
}

void expect_all(BatchSource& source) {
  for (const std::int64_t max_count : {std::int64_t{1} << 20, std::int64_t{16}, std::int64_t{48}}) {
    EXPECT_TRUE(rest_of(source, 0, 0, max_count) == expected(0, 0)) << "at most " << max_count;
    EXPECT_TRUE(rest_of(source, 1, 0, max_count) == expected(1, 0))
        << "the next epoch, at most " << max_count;
    EXPECT_TRUE(rest_of(source, 1, 320, max_count) == expected(1, 320))
        << "from the middle, at most " << max_count;
  }
}

LoaderOptions with_workers(int workers) {
  LoaderOptions options;
  options.workers = workers;
  return options;
}

TEST(HostPrefetcher, AnyNumberOfWorkers_GivesTheSameBytes) {
  for (const int workers : {0, 1, 3}) {
    HostPrefetcher source(detail::sample_store(images()), plan, digits_recipe(), with_workers(workers));
    expect_all(source);
  }
  EXPECT_EQ(
      HostPrefetcher(detail::sample_store(images()), plan, digits_recipe(), with_workers(0)).description(),
      "on the CPU, between the steps");
  EXPECT_EQ(
      HostPrefetcher(detail::sample_store(images()), plan, digits_recipe(), with_workers(2)).description(),
      "by 2 threads on the CPU");
}

TEST(HostPrefetcher, Epochs_DifferInAugmentation) {
  HostPrefetcher source(detail::sample_store(images()), plan, digits_recipe(), with_workers(0));
  EXPECT_FALSE(rest_of(source, 0, 0, 64) == rest_of(source, 1, 0, 64));
}

// On the CPU it copies from memory to memory, which also checks that blocks are not mixed up or overwritten.
TEST(DevicePrefetcher, EveryDevice_GivesTheSameBytes) {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const Device device : devices) {
    DevicePrefetcher source(detail::sample_store(images()), plan, digits_recipe(), with_workers(2), device);
    expect_all(source);
    EXPECT_GE(source.waited_ms(), 0);
  }
}

TEST(DeviceAugmentedImages, EveryDevice_GivesTheSameBytes) {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const Device device : devices) {
    DeviceAugmentedImages source(images().to(device), plan, digits_recipe());
    expect_all(source);
    EXPECT_EQ(source.description(),
              device.is_cuda() ? "on " + device.to_string() : "on the CPU, between the steps");
  }
}

}  // namespace
}  // namespace tandem
