// The loader with any workers: order, bits and bounds; and thread workers.
#include "tandem/data/loader/loader.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>

#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tests/core/error_text.h"
#include "tests/data/loader_cases.h"

namespace tandem {
namespace {

struct LoaderCase {
  int workers;
  WorkerKind kind;
  int prefetch = 0;
};

class LoaderWith : public testing::TestWithParam<LoaderCase> {
 protected:
  LoaderOptions options(std::int64_t epochs = 0) const {
    return {.workers = GetParam().workers,
            .kind = GetParam().kind,
            .prefetch = GetParam().prefetch,
            .epochs = epochs};
  }
};

TEST_P(LoaderWith, Epochs_GiveTheExpectedBits) {
  const ImageSet set = small_set(600);
  const BatchPlan plan{.samples = 600, .batch_size = 7, .seed = 5};
  Loader loader(detail::sample_store(set), plan, test_recipe(), options(2));
  for (const std::int64_t epoch : {0, 1})
    EXPECT_TRUE(load_epoch(loader, set, plan, epoch) == expected_epoch(set, plan, test_recipe(), epoch));
  const LoaderStatistics statistics = loader.statistics();
  EXPECT_EQ(statistics.images, 1200);
  EXPECT_EQ(statistics.blocks, 4);
  EXPECT_EQ(statistics.replaced_workers, 0);
  EXPECT_TRUE(statistics.skipped.empty());
}

TEST_P(LoaderWith, BalancedSampling_GivesTheExpectedBits) {
  const ImageSet set = small_set(300);
  const ClassLists classes(300, [&](std::int64_t i) { return set.labels.data<std::int32_t>()[i]; });
  const BatchPlan plan{.samples = 300, .batch_size = 7, .seed = 5, .balanced = classes.table()};
  Loader loader(detail::sample_store(set), plan, test_recipe(), options(1));
  EXPECT_TRUE(load_epoch(loader, set, plan, 0) == expected_epoch(set, plan, test_recipe(), 0));
}

TEST_P(LoaderWith, EmptyRecipeAndSeveralPasses_GiveTheExpectedBits) {
  const ImageSet set = small_set(300, 4, 5, 3);
  const BatchPlan plan{.samples = 200, .batch_size = 16, .batches_per_epoch = 70, .seed = 2};
  Loader loader(detail::sample_store(set), plan, {}, options());
  EXPECT_TRUE(load_epoch(loader, set, plan, 3) == expected_epoch(set, plan, {}, 3));
}

TEST_P(LoaderWith, Acquire_AtAnyPosition_GivesTheExpectedBits) {
  const ImageSet set = small_set(500);
  const BatchPlan plan{.samples = 500, .batch_size = 10, .batches_per_epoch = 200, .seed = 8};
  Loader loader(detail::sample_store(set), plan, test_recipe(), options());
  for (const auto& [epoch, first] : {std::pair{2, 770}, {0, 0}, {0, 1990}, {0, 510}, {2, 0}}) {
    const auto all = expected_epoch(set, plan, test_recipe(), epoch);
    EXPECT_TRUE(load_epoch(loader, set, plan, epoch, first) ==
                std::vector<Loaded>(all.begin() + first, all.end()))
        << epoch << " " << first;
    const LoadedBlock left = loader.acquire(5, 20);  // discards the prefetched blocks
    EXPECT_EQ(left.first, 20);
    loader.release(left);
  }
}

TEST_P(LoaderWith, HeldBlocks_StayValidUntilReleasedInAnyOrder) {
  const ImageSet set = small_set(500);
  const BatchPlan plan{.samples = 500, .batch_size = 100, .batches_per_epoch = 1000, .seed = 8};
  const auto expected = expected_epoch(set, plan, test_recipe(), 0);
  Loader loader(detail::sample_store(set), plan, test_recipe(), options());
  EXPECT_EQ(loader.block_images(), 500);
  std::int64_t first = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<LoadedBlock> held;
    for (int i = 0; i < loader.slots(); ++i) {
      held.push_back(loader.acquire(0, first));
      first += held.back().count;
    }
    std::vector<Loaded> all;
    for (const LoadedBlock& block : held) append(block, set.image_size(), all);
    EXPECT_TRUE(std::equal(all.begin(), all.end(), expected.begin() + held[0].first));
    std::swap(held[0], held[1]);
    std::reverse(held.begin(), held.end());
    for (const LoadedBlock& block : held) loader.release(block);
  }
}

TEST_P(LoaderWith, FewerSamplesThanWorkers_GiveTheExpectedBits) {
  const ImageSet set = small_set(2);
  const BatchPlan plan{.samples = 2, .batch_size = 16};
  Loader loader(detail::sample_store(set), plan, test_recipe(), options(40));
  for (std::int64_t epoch = 0; epoch < 40; ++epoch)
    EXPECT_TRUE(load_epoch(loader, set, plan, epoch) == expected_epoch(set, plan, test_recipe(), epoch));
}

INSTANTIATE_TEST_SUITE_P(LoaderCases, LoaderWith,
                         testing::Values(LoaderCase{0, WorkerKind::thread}, LoaderCase{1, WorkerKind::thread},
                                         LoaderCase{2, WorkerKind::thread, 1},
                                         LoaderCase{7, WorkerKind::thread},
                                         LoaderCase{1, WorkerKind::process, 1},
                                         LoaderCase{3, WorkerKind::process}),
                         [](const testing::TestParamInfo<LoaderCase>& loader_case) {
                           return std::to_string(loader_case.param.workers) +
                                  (loader_case.param.kind == WorkerKind::thread ? "Threads" : "Processes");
                         });

TEST(Loader, Prefetch_IsBoundedByTheRingAndTheLastEpoch) {
  const ImageSet set = small_set(512);
  const BatchPlan plan{.samples = 512, .batch_size = 512};
  std::atomic<int> touched{0};
  {
    Loader loader(
        detail::sample_store(set), plan, {},
        {.workers = 2, .prefetch = 1, .epochs = 7, .before_sample = [&](std::int32_t) { ++touched; }});
    EXPECT_EQ(loader.slots(), 3);
    for (std::int64_t epoch = 0; epoch < 7; ++epoch) {
      const LoadedBlock block = loader.acquire(epoch, 0);
      EXPECT_LE(touched, 512 * (epoch + 3));
      loader.release(block);
    }
  }
  EXPECT_EQ(touched, 7 * 512);
}

TEST(Loader, Blocks_AreWholeBatchesOfAFewMegabytes) {
  const auto block_images = [](std::int64_t side, std::int64_t batch) {
    const ImageSet set = small_set(20, side, side);
    const BatchPlan plan{.samples = 20, .batch_size = batch, .batches_per_epoch = 1000};
    return Loader(detail::sample_store(set), plan, {}, {}).block_images();
  };
  EXPECT_EQ(block_images(28, 16), 512);
  EXPECT_EQ(block_images(28, 100), 500);
  EXPECT_EQ(block_images(28, 600), 600);
  EXPECT_EQ(block_images(512, 4), 16);
  EXPECT_EQ(block_images(512, 20), 20);
}

TEST(Loader, Block_HasItsWorkerAndTimes) {
  const ImageSet set = small_set(100);
  Loader loader(detail::sample_store(set), {.samples = 100, .batch_size = 10}, test_recipe(), {.workers = 2});
  const LoadedBlock block = loader.acquire(0, 0);
  EXPECT_GE(block.worker, 0);
  EXPECT_LT(block.worker, 2);
  EXPECT_LE(block.claimed_ns, block.done_ns);
  EXPECT_LE(block.done_ns, monotonic_ns());
  EXPECT_GE(block.images, reinterpret_cast<const std::uint8_t*>(loader.memory().data()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.images) % 4096, 0U);
}

TEST(Loader, WorkerException_ReachesTheTrainerWithItsSample) {
  const ImageSet set = small_set(100);
  const BatchPlan plan{.samples = 100, .batch_size = 10};
  for (const int workers : {0, 1, 3}) {
    Loader loader(detail::sample_store(set), plan, {},
                  {.workers = workers, .before_sample = [](std::int32_t sample) {
                     if (sample == 17) throw std::runtime_error("no such pixel");
                   }});
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(error_text([&] { loader.acquire(0, 0); }), "[loader] sample 17: no such pixel");
  }
}

TEST(Loader, HungThread_ThrowsInsteadOfWaitingForever) {
  const ImageSet set = small_set(100);
  std::promise<void> promise;
  const std::shared_future<void> go = promise.get_future().share();
  {
    Loader loader(detail::sample_store(set), {.samples = 100, .batch_size = 10}, {},
                  {.workers = 1, .worker_timeout_s = 0.02, .before_sample = [go](std::int32_t sample) {
                     if (sample == 17) go.wait();
                   }});
    const std::string text = error_text([&] { loader.acquire(0, 0); });
    EXPECT_EQ(text.rfind("[loader] worker thread 0 has made no progress for ", 0), 0U) << text;
    EXPECT_NE(text.find("a thread cannot be replaced: use process workers"), std::string::npos) << text;
  }
  promise.set_value();
}

TEST(Loader, BadOptions_ThrowWithTheValue) {
  const ImageSet set = small_set(10);
  const BatchPlan plan{.samples = 10, .batch_size = 2};
  const auto text = [&](const LoaderOptions& options) {
    return error_text([&] { Loader(detail::sample_store(set), plan, {}, options); });
  };
  EXPECT_EQ(text({.workers = -1}), "[loader] expected 0 to 1024 workers, got -1");
  EXPECT_EQ(text({.workers = 5000}), "[loader] expected 0 to 1024 workers, got 5000");
  EXPECT_EQ(text({.prefetch = -2}), "[loader] expected prefetch from 0 to 4096 blocks, got -2");
  EXPECT_EQ(text({.worker_timeout_s = 0}),
            "[loader] expected a worker timeout of more than 0 seconds, got 0");
  EXPECT_EQ(text({.worker_timeout_s = std::numeric_limits<double>::quiet_NaN()}),
            "[loader] expected a worker timeout of more than 0 seconds, got nan");
  EXPECT_EQ(text({.epochs = -1}), "[loader] expected 0 or more epochs, got -1");
  EXPECT_EQ(error_text([&] { Loader(detail::sample_store(set), {.samples = 11}, {}, {}); }),
            "[loader] expected 11 samples, got 10");
  EXPECT_EQ(error_text([&] { Loader(detail::sample_store(ImageSet{}), plan, {}, {}); }),
            "[loader] expected images and labels, got none");
}

TEST(Loader, RingLargerThanMemory_Throws) {
  const ImageSet set = small_set(10, 1000, 1000);
  const BatchPlan plan{.samples = 10, .batch_size = 1 << 20, .batches_per_epoch = 1};
  const auto text =
      error_text([&] { Loader(detail::sample_store(set), plan, {}, {.workers = 1, .prefetch = 4096}); });
  EXPECT_EQ(text.rfind("[shared memory] the loader's ring needs ", 0), 0U) << text;
  EXPECT_NE(text.find(": lower prefetch or "), std::string::npos) << text;
}

TEST(Loader, DefaultWorkerCount_FollowsSlurmOrTheCpus) {
  ASSERT_EQ(unsetenv("SLURM_CPUS_PER_TASK"), 0);
  EXPECT_EQ(default_worker_count(), std::max(2, usable_cpus()));
  const auto with = [](const char* value) {
    setenv("SLURM_CPUS_PER_TASK", value, 1);
    const int count = default_worker_count();
    unsetenv("SLURM_CPUS_PER_TASK");
    return count;
  };
  EXPECT_EQ(with("12"), 12);
  EXPECT_EQ(with("1"), 2);
  EXPECT_EQ(with("99999"), 1024);
  EXPECT_EQ(with("many"), std::max(2, usable_cpus()));
  EXPECT_EQ(with("-4"), std::max(2, usable_cpus()));
}

}  // namespace
}  // namespace tandem
