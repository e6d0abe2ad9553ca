// The loader with photographs, decoded up front or by the workers: order and bits with any workers,
// unreadable files, crashes.
#include <csignal>

#include "tests/core/error_text.h"
#include "tests/data/photo_cases.h"

namespace tandem {
namespace {

struct LoaderCase {
  int workers;
  WorkerKind kind;
  bool decoded;
};

const PhotoRecipe recipe =
    Transform::parse("crop, flip, jitter 0.4 0.4 0.4 0.1, randaugment 1 9, erase 0.3", 12).photo();

class PhotoLoaderWith : public testing::TestWithParam<LoaderCase> {
 protected:
  LoaderOptions options(std::int64_t epochs = 0) const {
    return {.workers = GetParam().workers, .kind = GetParam().kind, .epochs = epochs};
  }
  bool decoded() const { return GetParam().decoded; }
};

TEST_P(PhotoLoaderWith, Epochs_GiveTheExpectedBits) {
  const PhotoFolder folder(60);
  const BatchPlan plan{.samples = 55, .batch_size = 7, .seed = 5};
  Loader loader(detail::sample_store(folder.store(decoded())), plan, recipe, options(3));
  for (const std::int64_t epoch : {0, 1, 2})
    EXPECT_TRUE(load_photo_epoch(loader, plan, recipe, epoch) == folder.expected_epoch(plan, recipe, epoch));
  EXPECT_TRUE(loader.statistics().skipped.empty());
  EXPECT_EQ(loader.statistics().images, 165);
}

TEST_P(PhotoLoaderWith, Acquire_AtAnyPosition_GivesTheExpectedBits) {
  const PhotoFolder folder(30, {2});
  const BatchPlan plan{.samples = 30, .batch_size = 4, .batches_per_epoch = 40, .seed = 6};
  Loader loader(detail::sample_store(folder.store(decoded())), plan, recipe, options());
  const auto all = folder.expected_epoch(plan, recipe, 1);
  EXPECT_TRUE(load_photo_epoch(loader, plan, recipe, 1, 92) ==
              std::vector<Loaded>(all.begin() + 92, all.end()));
}

TEST_P(PhotoLoaderWith, Shuffled_NextPhotoReplacesABadOne) {
  const std::set<std::size_t> bad{3, 4, 11, 30, 39};
  const PhotoFolder folder(40, bad);
  const BatchPlan plan{.samples = 40, .batch_size = 3, .seed = 5};
  Loader loader(detail::sample_store(folder.store(decoded())), plan, recipe, options(4));
  for (std::int64_t epoch = 0; epoch < 4; ++epoch)
    EXPECT_TRUE(load_photo_epoch(loader, plan, recipe, epoch) == folder.expected_epoch(plan, recipe, epoch))
        << epoch;
  std::set<std::size_t> skipped;
  for (const SkippedSample& one : loader.statistics().skipped) {
    const auto sample = static_cast<std::size_t>(one.sample);
    EXPECT_TRUE(skipped.insert(sample).second) << "reported twice";
    EXPECT_EQ(one.name, folder.files[sample].string());
    EXPECT_FALSE(one.reason.empty());
    EXPECT_EQ(one.reason.find(".png"), std::string::npos) << one.reason;
  }
  EXPECT_EQ(skipped, bad);
}

TEST_P(PhotoLoaderWith, StoredOrder_NextPhotoReplacesABadOne) {
  const PhotoFolder folder(25, {0, 9, 10, 24});
  const BatchPlan plan{.samples = 25, .batch_size = 4, .shuffle = false};
  Loader loader(detail::sample_store(folder.store(decoded())), plan, recipe, options(2));
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto all = load_photo_epoch(loader, plan, recipe, epoch);
    EXPECT_TRUE(all == folder.expected_epoch(plan, recipe, epoch)) << epoch;
    const std::int32_t order[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 11, 11, 11, 12};
    for (std::size_t i = 0; i < std::size(order); ++i) EXPECT_EQ(all[i].sample, order[i]) << i;
    EXPECT_EQ(all[24].sample, 1) << "after the last photograph comes the first";
  }
}

TEST_P(PhotoLoaderWith, NotReplaced_BadPhotosAreBlackWithoutLabel) {
  const PhotoFolder folder(25, {0, 9, 24});
  const BatchPlan plan{.samples = 25, .batch_size = 4, .shuffle = false, .replace_unreadable = false};
  const PhotoRecipe evaluation = evaluation_photo_recipe(14, PhotoFit::center);
  Loader loader(detail::sample_store(folder.store(decoded())), plan, evaluation, options(1));
  const auto all = load_photo_epoch(loader, plan, evaluation, 0);
  EXPECT_TRUE(all == folder.expected_epoch(plan, evaluation, 0));
  EXPECT_EQ(all[9].label, -1);
  EXPECT_EQ(all[10].sample, 10);
  EXPECT_EQ(loader.statistics().skipped.size(), 3U);
}

TEST_P(PhotoLoaderWith, OnBadImageFail_ThrowsWithThePath) {
  const PhotoFolder folder(20, {6});
  const BatchPlan plan{.samples = 20, .batch_size = 4};
  const std::string text = error_text([&] {
    Loader loader(detail::sample_store(folder.store(decoded(), OnBadImage::fail)), plan, recipe, options());
    load_photo_epoch(loader, plan, recipe, 0);
  });
  const std::string start = (decoded() ? "[photos] " : "[loader] ") + folder.files[6].string() + ": ";
  EXPECT_EQ(text.rfind(start, 0), 0U) << text;
  EXPECT_GT(text.size(), start.size());
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    LoaderCases, PhotoLoaderWith,
    testing::Values(LoaderCase{0, WorkerKind::thread, true}, LoaderCase{0, WorkerKind::thread, false},
                    LoaderCase{1, WorkerKind::thread, false}, LoaderCase{3, WorkerKind::thread, true},
                    LoaderCase{5, WorkerKind::thread, false}, LoaderCase{2, WorkerKind::process, true},
                    LoaderCase{3, WorkerKind::process, false}),
    [](const testing::TestParamInfo<LoaderCase>& loader_case) {
      return std::to_string(loader_case.param.workers) +
             (loader_case.param.kind == WorkerKind::thread ? "Threads" : "Processes") +
             (loader_case.param.decoded ? "Decoded" : "Files");
    });

TEST(PhotoLoader, KilledWorkers_GiveTheSameBits) {
  const PhotoFolder folder(50, {8, 33}, 20);
  const BatchPlan plan{.samples = 50, .batch_size = 10, .seed = 4};
  for (const bool decoded : {true, false}) {
    const auto store = folder.store(decoded);
    Loader loader(detail::sample_store(store), plan, recipe,
                  {.workers = 3, .kind = WorkerKind::process, .prefetch = 2});
    std::int64_t kills = 0;
    for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
      EXPECT_TRUE(load_photo_epoch(loader, plan, recipe, epoch) == folder.expected_epoch(plan, recipe, epoch))
          << epoch;
      const auto pids = loader.worker_pids();
      if (pids.empty() || epoch % 3 == 0) continue;
      kill(pids[static_cast<std::size_t>(epoch) % pids.size()], SIGKILL);
      ++kills;
    }
    EXPECT_GE(kills, 10);
    EXPECT_GE(loader.statistics().replaced_workers, 5);
    EXPECT_EQ(loader.statistics().skipped.size(), 2U);
  }
}

TEST(PhotoLoader, PhotoThatCrashesThreeWorkers_IsReportedAndSkipped) {
  const PhotoFolder folder(crashing_sample + 1, {}, 2);
  const BatchPlan plan{.samples = crashing_sample + 1, .batch_size = 32, .seed = 4};
  const PhotoRecipe small = training_photo_recipe(4);
  std::vector<std::string> messages;
  Loader loader(
      detail::sample_store(folder.store(true)), plan, small,
      {.workers = 2, .kind = WorkerKind::process, .epochs = 2, .on_message = [&](const std::string& text) {
         messages.push_back(text);
       }});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    auto expected = folder.expected_epoch(plan, small, epoch);
    const auto at = std::find_if(expected.begin(), expected.end(),
                                 [](const Loaded& loaded) { return loaded.sample == crashing_sample; });
    *at = at + 1 == expected.end() ? expected.front() : *(at + 1);
    EXPECT_TRUE(load_photo_epoch(loader, plan, small, epoch) == expected) << epoch;
  }
  const std::string path = folder.files[crashing_sample].string();
  ASSERT_EQ(loader.statistics().skipped.size(), 1U);
  EXPECT_EQ(loader.statistics().skipped[0].name, path);
  EXPECT_EQ(
      std::count(messages.begin(), messages.end(), path + " crashed 3 workers and is skipped from now on"),
      1);
}

TEST(PhotoLoader, OnlyBadPhotos_Throws) {
  const PhotoFolder folder(6, {0, 1, 2, 3, 4, 5});
  const BatchPlan plan{.samples = 6, .batch_size = 2};
  for (const int workers : {0, 2}) {
    Loader loader(detail::sample_store(folder.store(false)), plan, recipe, {.workers = workers});
    const std::string text = error_text([&] { loader.acquire(0, 0); });
    EXPECT_NE(text.find("expected photographs that can be read, got none in 6 files, the last: "),
              std::string::npos)
        << text;
  }
}

TEST(PhotoLoader, FileDeletedDuringTraining_IsSkipped) {
  const PhotoFolder folder(10);
  const BatchPlan plan{.samples = 10, .batch_size = 5};
  Loader loader(detail::sample_store(folder.store(false)), plan, recipe, {});
  load_photo_epoch(loader, plan, recipe, 0);
  EXPECT_TRUE(loader.statistics().skipped.empty());
  std::filesystem::remove(folder.files[3]);
  load_photo_epoch(loader, plan, recipe, 1);
  ASSERT_EQ(loader.statistics().skipped.size(), 1U);
  EXPECT_EQ(loader.statistics().skipped[0].sample, 3);
}

TEST(PhotoLoader, PlanLargerThanTheStore_Throws) {
  const PhotoFolder folder(3);
  EXPECT_EQ(error_text([&] {
              Loader(detail::sample_store(folder.store(true)), BatchPlan{.samples = 4}, recipe, {});
            }),
            "[loader] expected 4 samples, got 3");
}

TEST(PhotoLoader, LargeImages_LimitTheDefaultPrefetch) {
  const PhotoFolder folder(4);
  const BatchPlan plan{.samples = 4, .batch_size = 1024, .batches_per_epoch = 3};
  const auto store = folder.store(false);
  const auto slots = [&](int workers) {
    return Loader(detail::sample_store(store), plan, training_photo_recipe(224), {.workers = workers})
        .slots();
  };
  EXPECT_EQ(slots(2), 4 + 2);
  EXPECT_EQ(slots(5), 6 + 2);  // of 154 MB each
}

}  // namespace
}  // namespace tandem
