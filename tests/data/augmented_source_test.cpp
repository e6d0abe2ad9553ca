// Every source of augmented images, whoever does the work, gives the bytes augment_batch() gives.
#include "tandem/data/augmented_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tandem/augment/augment.h"
#include "tandem/data/digits.h"
#include "tandem/device/driver.h"

namespace tandem {
namespace {

constexpr std::int64_t samples = 700;  // more than a block of the loader
const BatchPlan plan{.samples = samples, .batch_size = 16, .seed = 5};

const ImageSet& images() {
  static const ImageSet set = make_digits(samples, 3);
  return set;
}

struct Taken {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  friend bool operator==(const Taken&, const Taken&) = default;
};

template <class T>
std::vector<T> to_host(const T* from, std::int64_t count, Device device) {
  std::vector<T> values(static_cast<std::size_t>(count));
  on_backend(device, "test", [&]<Backend B>() {
    copy_bytes<B>(values.data(), from, values.size() * sizeof(T), current_stream(device));
  });
  current_stream(device).synchronize();
  return values;
}

void append(Taken& taken, const SourceBlock& block, const BatchSource& source) {
  const std::int64_t size = source.image_size();
  const auto pixels = to_host(block.images, block.image_count * size, source.device());
  for (const std::int32_t sample : to_host(block.samples, block.count, source.device()))
    taken.pixels.insert(taken.pixels.end(), pixels.begin() + sample * size,
                        pixels.begin() + (sample + 1) * size);
  for (const std::int32_t label : to_host(block.labels, block.count, source.device()))
    taken.labels.push_back(label);
}

// Positions from `first` to the end of an epoch, at most `most` at a time.
Taken rest_of(BatchSource& source, std::int64_t epoch, std::int64_t first, std::int64_t most) {
  Taken taken;
  while (first < samples) {
    const SourceBlock block = source.take(epoch, first, most);
    EXPECT_GT(block.count, 0);
    EXPECT_LE(block.count, most);
    EXPECT_TRUE(block.count % plan.batch_size == 0 || first + block.count == samples);
    append(taken, block, source);
    first += block.count;
  }
  return taken;
}

Taken expected(std::int64_t epoch, std::int64_t first) {
  const Tensor order = Tensor::empty({samples - first}, DType::i32);
  const Tensor labels = Tensor::empty({samples - first}, DType::i32);
  fill_block(plan, epoch, first, images().labels, order, labels);
  const Tensor out = Tensor::empty({samples - first, 28, 28, 1}, DType::u8);
  augment_batch(digits_recipe(), plan.seed, epoch, images().images, order, out);
  return {out.to_vector<std::uint8_t>(), labels.to_vector<std::int32_t>()};
}

void expect_all(BatchSource& source) {
  for (const std::int64_t most : {std::int64_t{1} << 20, std::int64_t{16}, std::int64_t{48}}) {
    EXPECT_TRUE(rest_of(source, 0, 0, most) == expected(0, 0)) << "at most " << most;
    EXPECT_TRUE(rest_of(source, 1, 0, most) == expected(1, 0)) << "the next epoch, at most " << most;
    EXPECT_TRUE(rest_of(source, 1, 320, most) == expected(1, 320)) << "from the middle, at most " << most;
  }
}

LoaderOptions with_workers(int workers) {
  LoaderOptions options;
  options.workers = workers;
  return options;
}

TEST(AugmentedSource, WorkersOnTheCpu) {
  for (const int workers : {0, 1, 3}) {
    LoadedImages source(images(), plan, digits_recipe(), with_workers(workers));
    expect_all(source);
  }
  EXPECT_EQ(LoadedImages(images(), plan, digits_recipe(), with_workers(0)).description(),
            "on the CPU, between the steps");
  EXPECT_EQ(LoadedImages(images(), plan, digits_recipe(), with_workers(2)).description(),
            "by 2 threads on the CPU");
}

TEST(AugmentedSource, EpochsAreAugmentedAnew) {
  LoadedImages source(images(), plan, digits_recipe(), with_workers(0));
  EXPECT_FALSE(rest_of(source, 0, 0, 64) == rest_of(source, 1, 0, 64));
}

// On the CPU it copies from memory to memory, which shows that blocks are neither mixed up nor overwritten.
TEST(AugmentedSource, CopiesOfWhatWorkersMade) {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const Device device : devices) {
    CopiedImages source(images(), plan, digits_recipe(), with_workers(2), device);
    expect_all(source);
    EXPECT_GE(source.waited_ms(), 0);
  }
}

TEST(AugmentedSource, OnTheDeviceItself) {
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
