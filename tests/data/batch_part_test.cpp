// Every source delivers one rank's part of each batch: the parts of all ranks are the rows of the whole
// batches, image by image.
#include <functional>
#include <memory>
#include <string>

#include "tandem/data/loader/augmented_source.h"
#include "tandem/data/loader/photo_source.h"
#include "tandem/data/loader/traced_source.h"
#include "tests/data/part_cases.h"
#include "tests/data/photo_cases.h"
#include "tests/device/device_cases.h"
#include "tests/device/to_host.h"

namespace tandem {
namespace {

using Source = std::unique_ptr<BatchSource>;

struct SourceCase {
  std::string name;
  std::function<Source(const BatchPlan&)> make;
  bool photos = false;
};

void PrintTo(const SourceCase& one, std::ostream* out) {
  *out << one.name;
}

struct Row {
  std::int32_t label = 0;
  std::vector<std::uint8_t> pixels;

  friend bool operator==(const Row&, const Row&) = default;
};
using Rows = std::vector<Row>;

// The local rows of each step of an epoch from `first_step` on, at most `max_batches` at a time.
std::vector<Rows> read_steps(BatchSource& source, std::int64_t epoch, std::int64_t first_step,
                             std::int64_t max_batches) {
  const BatchPlan& plan = source.plan();
  const std::int64_t batch = plan.local_batch_size(), positions = plan.local_positions();
  const std::int64_t size = source.image_size();
  Rows all;
  for (std::int64_t first = first_step * batch; first < positions;) {
    const SourceBlock block = source.next_block(epoch, first, max_batches * batch);
    EXPECT_TRUE(block.count > 0 && (block.count % batch == 0 || first + block.count == positions));
    if (block.count <= 0) return {};
    const auto pixels = to_host(block.images, block.image_count * size, source.device());
    const auto indices = to_host(block.samples, block.count, source.device());
    const auto labels = to_host(block.labels, block.count, source.device());
    for (std::size_t i = 0; i < indices.size(); ++i)
      all.push_back({labels[i], std::vector<std::uint8_t>(pixels.begin() + indices[i] * size,
                                                          pixels.begin() + (indices[i] + 1) * size)});
    first += block.count;
  }
  std::vector<Rows> steps;
  auto at = all.begin();
  for (std::int64_t step = first_step; step < plan.steps(); at += plan.local_rows(step), ++step)
    steps.emplace_back(at, at + plan.local_rows(step));
  EXPECT_EQ(at, all.end());
  return steps;
}

// Removes the row before the first own one, which must be the one of the whole batch.
void take_previous_row(const BatchPlan& plan, std::int64_t step, const Rows& whole, Rows& rows) {
  if (!plan.part.previous_row || rows.empty()) return;
  const std::int64_t count = plan.rows(step), first = plan.own_rows(step).begin;
  EXPECT_TRUE(rows.front() == whole[static_cast<std::size_t>((first + count - 1) % count)]) << step;
  rows.erase(rows.begin());
}

void expect_parts(const SourceCase& source_case, const Division& division, std::int64_t first_step,
                  std::int64_t max_batches) {
  const std::int64_t epoch = 1;
  const std::vector<Rows> whole = read_steps(*source_case.make(division.whole), epoch, 0, 1000);
  std::vector<Rows> joined(whole.size());
  for (const BatchPlan& plan : division.parts()) {
    const Source source = source_case.make(plan);
    std::vector<Rows> part = read_steps(*source, epoch, first_step, max_batches);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::size_t step = static_cast<std::size_t>(first_step) + i;
      take_previous_row(plan, static_cast<std::int64_t>(step), whole[step], part[i]);
      joined[step].insert(joined[step].end(), part[i].begin(), part[i].end());
    }
  }
  for (auto step = static_cast<std::size_t>(first_step); step < whole.size(); ++step)
    EXPECT_TRUE(joined[step] == whole[step]) << source_case.name << ": " << division << ", step " << step;
}

std::vector<Division> divisions_of(bool photos) {
  const BatchPlan plan{.samples = photos ? 40 : 697, .batch_size = 9, .seed = 3};
  // For images in memory more than one block of a loader.
  const BatchPlan passes{.samples = 34, .batch_size = 6, .batches_per_epoch = photos ? 17 : 200};
  const BatchPlan stored{.samples = 38, .batch_size = 5, .shuffle = false, .replace_unreadable = false};
  return {{.whole = plan, .shards = 4, .ranks = 2},
          {.whole = plan, .shards = 8, .ranks = 3, .previous_row = true},
          {.whole = passes, .shards = 5, .ranks = 2, .previous_row = true},
          {.whole = stored, .shards = 5, .ranks = 4, .previous_row = true}};
}

class PartOf : public testing::TestWithParam<SourceCase> {};

TEST_P(PartOf, AllRanks_GiveTheWholeBatches) {
  for (const Division& division : divisions_of(GetParam().photos)) expect_parts(GetParam(), division, 0, 100);
}

TEST_P(PartOf, ResumedInTheMiddle_GivesTheSameRows) {
  const Division division = divisions_of(GetParam().photos)[1];
  expect_parts(GetParam(), division, division.whole.steps() / 2 + 1, 1);
}

// Two images for three ranks: the first has none, and nothing to load.
TEST_P(PartOf, EpochWithoutOwnRows_HasNoPositions) {
  const Division division{
      .whole = {.samples = 2, .batch_size = 4}, .shards = 3, .ranks = 3, .previous_row = true};
  EXPECT_EQ(GetParam().make(division.parts()[0])->plan().local_positions(), 0);
  expect_parts(GetParam(), division, 0, 1);
}

// Some are replaced by the next one of the pass, also where that is in another rank's part.
const PhotoFolder& folder() {
  static const PhotoFolder photos(40, {3, 4, 11, 12, 13, 30, 39});
  return photos;
}

std::vector<SourceCase> source_cases() {
  const auto set_of = [](const BatchPlan& plan) { return small_set(plan.samples, 12, 9); };
  const Recipe recipe = test_recipe();
  const PhotoRecipe photo = Transform::parse("crop, flip, jitter 0.4 0.4 0.4 0.1", 12).photo();
  std::vector<SourceCase> all;
  for (const Device device : test_devices()) {
    const std::string on = device.is_cuda() ? "_cuda" : "_cpu";
    all.push_back({"InMemorySource" + on, [=](const BatchPlan& plan) -> Source {
                     return std::make_unique<InMemorySource>(set_of(plan).to(device), plan);
                   }});
    all.push_back({"DeviceAugmentedImages" + on, [=](const BatchPlan& plan) -> Source {
                     return std::make_unique<DeviceAugmentedImages>(set_of(plan).to(device), plan, recipe);
                   }});
    all.push_back({"DevicePrefetcher" + on, [=](const BatchPlan& plan) -> Source {
                     return std::make_unique<DevicePrefetcher>(detail::sample_store(set_of(plan)), plan,
                                                               recipe, LoaderOptions{.workers = 2}, device);
                   }});
    all.push_back({"DevicePhotos" + on,
                   [=](const BatchPlan& plan) -> Source {
                     return std::make_unique<DevicePhotos>(folder().store(true), plan, photo, device);
                   },
                   true});
    all.push_back({"PhotoDevicePrefetcher" + on,
                   [=](const BatchPlan& plan) -> Source {
                     return std::make_unique<DevicePrefetcher>(detail::sample_store(folder().store(false)),
                                                               plan, photo, LoaderOptions{.workers = 2},
                                                               device);
                   },
                   true});
  }
  all.push_back({"TracedSource", [=](const BatchPlan& plan) -> Source {
                   static Timeline timeline;
                   return std::make_unique<TracedSource>(std::make_unique<InMemorySource>(set_of(plan), plan),
                                                         timeline, "augment");
                 }});
  for (const LoaderOptions& options : {LoaderOptions{}, LoaderOptions{.workers = 3},
                                       LoaderOptions{.workers = 2, .kind = WorkerKind::process}}) {
    const std::string by = options.workers == 0                  ? "NoWorkers"
                           : options.kind == WorkerKind::process ? "Processes"
                                                                 : "Threads";
    all.push_back({"HostPrefetcher" + by, [=](const BatchPlan& plan) -> Source {
                     return std::make_unique<HostPrefetcher>(detail::sample_store(set_of(plan)), plan, recipe,
                                                             options);
                   }});
    for (const bool decoded : {true, false})
      all.push_back({(decoded ? "Decoded" : "Files") + by,
                     [=](const BatchPlan& plan) -> Source {
                       return std::make_unique<HostPrefetcher>(detail::sample_store(folder().store(decoded)),
                                                               plan, photo, options);
                     },
                     true});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sources, PartOf, testing::ValuesIn(source_cases()),
                         [](const testing::TestParamInfo<SourceCase>& one) { return one.param.name; });

// What a loader says of its samples: the replacement of a bad photograph is the one of the whole plan.
TEST(LoaderPart, BadPhotos_AreReplacedAsInTheWholePlan) {
  const PhotoRecipe recipe = training_photo_recipe(10);
  const BatchPlan whole{.samples = 40, .batch_size = 7, .batches_per_epoch = 11, .seed = 6};
  const Division division{.whole = whole, .shards = 7, .ranks = 3, .previous_row = true};
  const std::vector<Loaded> all = folder().expected_epoch(whole, recipe, 1);
  for (const BatchPlan& plan : division.parts()) {
    std::vector<Loaded> expected;
    for (std::int64_t local = 0; local < plan.local_positions(); ++local)
      expected.push_back(all[static_cast<std::size_t>(plan.global_position(local))]);
    for (const bool decoded : {true, false}) {
      Loader loader(detail::sample_store(folder().store(decoded)), plan, recipe, {.workers = 2});
      EXPECT_TRUE(load_photo_epoch(loader, plan, recipe, 1) == expected) << decoded;
    }
  }
}

}  // namespace
}  // namespace tandem
