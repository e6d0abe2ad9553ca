#include "tandem/data/loader/data_loader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "tandem/device/device.h"
#include "tests/core/error_text.h"
#include "tests/data/dataset_cases.h"
#include "tests/data/photo_cases.h"

namespace tandem {
namespace {

static_assert(std::input_iterator<EpochRange::Iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, EpochRange::Iterator>);

// A batch as bytes; the default norm divides pixels by 255.
std::vector<Loaded> bytes_of(const Batch& batch) {
  const std::vector<float> values = batch.images.to_vector<float>();
  const std::vector<std::int64_t> labels = batch.labels.to_vector<std::int64_t>();
  const std::size_t bytes = values.size() / labels.size();
  std::vector<Loaded> all;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    Loaded one{0, static_cast<std::int32_t>(labels[i]), {}};
    for (std::size_t j = 0; j < bytes; ++j)
      one.pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * values[i * bytes + j])));
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<Loaded> epoch_of(const DataLoader& loader, std::int64_t epoch) {
  std::vector<Loaded> all;
  std::int64_t step = 0;
  for (const Batch& batch : loader.epoch(epoch)) {
    EXPECT_EQ(batch.epoch, epoch);
    EXPECT_EQ(batch.step, step++);
    EXPECT_EQ(batch.images.size(0), batch.size());
    for (Loaded& one : bytes_of(batch)) all.push_back(std::move(one));
  }
  EXPECT_EQ(step, loader.size());
  return all;
}

// Batches do not carry sample indices.
std::vector<Loaded> without_samples(std::vector<Loaded> all) {
  for (Loaded& one : all) one.sample = 0;
  return all;
}

struct Workers {
  int count;
  WorkerKind kind;
};
constexpr Workers all_workers[] = {
    {0, WorkerKind::thread}, {1, WorkerKind::thread}, {2, WorkerKind::thread}, {2, WorkerKind::process}};

std::vector<Device> devices() {
  std::vector<Device> all{cpu_device};
  if (cuda_device_count() > 0) all.push_back(cuda_device());
  return all;
}

TEST(DataLoader, AnyWorkers_GiveTheBytesThatTheTrainerSees) {
  const NoiseDataset own(110);
  const ImageSet set = own.in_memory();
  const ImageDataset in_memory(set);
  const BatchPlan plan{.samples = 110, .batch_size = 16, .seed = 3};
  for (const Transform& transform : {Transform(), Transform(test_recipe())})
    for (const Device device : devices())
      for (const Workers& workers : all_workers)
        for (const Dataset* dataset :
             {static_cast<const Dataset*>(&own), static_cast<const Dataset*>(&in_memory)}) {
          DataLoader loader(*dataset, {.batch_size = 16,
                                       .transform = transform,
                                       .seed = 3,
                                       .workers = workers.count,
                                       .worker_kind = workers.kind,
                                       .device = device});
          EXPECT_EQ(loader.size(), 7);
          for (const std::int64_t epoch : {0, 1, 5})
            EXPECT_TRUE(epoch_of(loader, epoch) ==
                        without_samples(expected_epoch(set, plan, transform.pixels(), epoch)));
          EXPECT_GE(loader.waited_ms(), 0);
          EXPECT_TRUE(loader.skipped().empty());
        }
}

TEST(DataLoader, Photographs_AreTransformedAndBadOnesReplaced) {
  const PhotoFolder folder(20, {4, 11});
  const Transform transform = training_transform(12);
  for (const bool shuffle : {true, false})
    for (const bool decoded : {true, false})
      for (const Workers& workers : all_workers) {
        const BatchPlan plan{
            .samples = 20, .batch_size = 8, .seed = 1, .shuffle = shuffle, .replace_unreadable = shuffle};
        DataLoader loader(PhotoDataset(folder.store(decoded), {"x", "y", "z"}),  // the loader keeps it
                          {.batch_size = 8,
                           .transform = transform,
                           .shuffle = shuffle,
                           .workers = workers.count,
                           .worker_kind = workers.kind});
        EXPECT_TRUE(epoch_of(loader, 0) ==
                    without_samples(folder.expected_epoch(plan, transform.photo(), 0)));
        ASSERT_EQ(loader.skipped().size(), 2U);
        EXPECT_EQ(loader.skipped()[0].name.find("photo "), folder.files[0].string().find("photo "));
      }
}

TEST(DataLoader, Batch_IsNormalizedFloatsAndLabels) {
  const ImageSet set = small_set(5, 3, 2, 3);
  const PixelNorm norm{{0.5f, 0.25f, 0.125f, 0}, {2, 4, 8, 1}};
  for (const Device device : devices()) {
    DataLoader loader(
        ImageDataset(set),
        {.batch_size = 4, .shuffle = false, .device = device, .batches_per_epoch = 2, .norm = norm});
    std::int64_t first = 0;
    for (const Batch& batch : loader.epoch(0)) {
      EXPECT_EQ(batch.images.shape(), (Shape{4, 3, 2, 3}));
      EXPECT_EQ(batch.images.dtype(), DType::f32);
      EXPECT_EQ(batch.images.device(), device);
      EXPECT_EQ(batch.labels.dtype(), DType::i64);
      EXPECT_EQ(batch.labels.device(), device);
      const std::vector<float> values = batch.images.to_vector<float>();
      const std::vector<std::int64_t> labels = batch.labels.to_vector<std::int64_t>();
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t sample = (first + i) % 5;
        EXPECT_EQ(labels[static_cast<std::size_t>(i)], sample);
        for (std::int64_t j = 0; j < 18; ++j) {
          const double pixel = set.images.data<std::uint8_t>()[sample * 18 + j] / 255.0;
          const double expected = (pixel - norm.mean[j % 3]) / norm.stddev[j % 3];
          EXPECT_NEAR(values[static_cast<std::size_t>(i * 18 + j)], expected, 1e-6);
        }
      }
      first += 4;
    }
    EXPECT_EQ(first, 8);
  }
}

TEST(DataLoader, Batches_OutliveTheLoopAndTheLoader) {
  const ImageSet set = small_set(40);
  const auto expected = without_samples(expected_epoch(set, {.samples = 40, .batch_size = 10}, {}, 0));
  for (const Workers& workers : all_workers) {
    std::vector<Batch> batches;
    std::optional<EpochRange> range;
    {
      DataLoader loader(ImageDataset(set), {.batch_size = 10,
                                            .transform = compose({random_shift({0, 0}, {0, 0})}),
                                            .workers = workers.count,
                                            .worker_kind = workers.kind});
      for (const Batch& batch : loader.epoch(0)) batches.push_back(batch);
      range = loader.epoch(0);
    }
    for (const Batch& batch : *range) batches.push_back(batch);  // keeps what it needs
    ASSERT_EQ(batches.size(), 8U);
    for (std::size_t i = 0; i < 8; ++i) {
      const auto from = expected.begin() + static_cast<std::ptrdiff_t>(i % 4 * 10);
      EXPECT_TRUE(bytes_of(batches[i]) == std::vector<Loaded>(from, from + 10)) << i;
    }
  }
}

TEST(DataLoader, Epochs_MayBeLeftRepeatedAndInterleaved) {
  const ImageSet set = small_set(90);
  const BatchPlan plan{.samples = 90, .batch_size = 20, .seed = 7};
  for (const Workers& workers : all_workers) {
    DataLoader loader(ImageDataset(set), {.batch_size = 20,
                                          .transform = test_recipe(),
                                          .seed = 7,
                                          .workers = workers.count,
                                          .worker_kind = workers.kind,
                                          .prefetch = 1});
    const auto expected = [&](std::int64_t epoch, std::int64_t step) {
      const auto all = without_samples(expected_epoch(set, plan, test_recipe(), epoch));
      const auto from = all.begin() + step * 20;
      return std::vector<Loaded>(from, from + plan.rows(step));
    };
    for (const Batch& batch : loader.epoch(0))
      if (batch.step == 1) break;
    EXPECT_TRUE(epoch_of(loader, 0) == without_samples(expected_epoch(set, plan, test_recipe(), 0)));
    for (const Batch& batch : loader.epoch(3)) {
      EXPECT_TRUE(bytes_of(batch) == expected(3, 0));
      break;
    }
    const EpochRange a = loader.epoch(0), b = loader.epoch(1);
    auto in_a = a.begin(), in_b = b.begin(), again = a.begin();
    for (std::int64_t step = 0; step < 5; ++step, ++in_a, ++in_b) {
      EXPECT_TRUE(bytes_of(*in_a) == expected(0, step));
      EXPECT_TRUE(bytes_of(*in_b) == expected(1, step));
      EXPECT_TRUE(bytes_of(*again) == expected(0, 0));
    }
    EXPECT_TRUE(in_a == a.end());
    EXPECT_EQ(error_text([&] { ++in_a; }),
              "[loader] expected a batch to advance from, got the end of epoch 0");
  }
}

TEST(DataLoader, WhatIsWrongWithASample_EndsTheLoopWithAnError) {
  for (const Workers& workers : all_workers) {
    const FaultyDataset dataset("throws");
    DataLoader loader(
        dataset, {.batch_size = 4, .shuffle = false, .workers = workers.count, .worker_kind = workers.kind});
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(error_text([&] {
                  for (const Batch& batch : loader.epoch(0)) static_cast<void>(batch);
                }),
                "[loader] shot 5: the camera is off");
  }
}

TEST(DataLoader, InvalidArguments_Throw) {
  const ImageDataset dataset(small_set(10));
  const auto text = [&](const DataLoaderOptions& options) {
    return error_text([&] { DataLoader(dataset, options); });
  };
  EXPECT_EQ(text({.batch_size = 0}), "[batches] expected a batch size from 1 to 1048576, got 0");
  EXPECT_EQ(text({.batches_per_epoch = -1}), "[batches] expected 0 to 2147483648 batches per epoch, got -1");
  EXPECT_EQ(text({.workers = -1}), "[loader] expected 0 to 1024 workers, got -1");
  EXPECT_EQ(text({.prefetch = -1}), "[loader] expected prefetch from 0 to 4096 blocks, got -1");
  EXPECT_EQ(text({.norm = {{0, 0, 0, 0}, {0, 1, 1, 1}}}),
            "[loader] expected standard deviations above 0 in norm");
  EXPECT_EQ(error_text([] { DataLoader(NoiseDataset(0)); }),
            "[batches] expected 1 to 2147483647 samples, got 0");
  EXPECT_EQ(error_text([&] { DataLoader(dataset.slice(2, 2)); }),
            "[batches] expected 1 to 2147483647 samples, got 0");
  EXPECT_EQ(error_text([] { DataLoader(std::shared_ptr<const Dataset>()); }),
            "[loader] expected a data set, got none");
  EXPECT_EQ(error_text([] { DataLoader(ImageDataset(small_set(4, 3, 3, 5))); }),
            "[loader] expected images of at most 4 channels, got 5");
  DataLoader loader(dataset);
  EXPECT_EQ(error_text([&] { loader.epoch(-1); }), "[loader] expected an epoch from 0 to 4294967295, got -1");
  const DataLoader other = std::move(loader);
  EXPECT_EQ(error_text([&] { loader.epoch(0); }), "[loader] expected a loader, got one that was moved from");
  EXPECT_EQ(epoch_of(other, 0).size(), 10U);
  if (cuda_device_count() == 0) {
    EXPECT_NE(text({.device = cuda_device()}), "");
  }
}

TEST(DataLoader, BatchLargerThanTheDataSet_HoldsAllOfIt) {
  DataLoader loader(ImageDataset(small_set(3)), {.batch_size = 64});
  EXPECT_EQ(loader.size(), 1);
  EXPECT_EQ((*loader.epoch(0).begin()).size(), 3);
}

}  // namespace
}  // namespace tandem
