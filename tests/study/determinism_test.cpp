#include "tandem/study/determinism.h"

#include <gtest/gtest.h>

#include "tandem/device/device.h"
#include "tests/core/error_text.h"
#include "tests/data/loader_cases.h"
#include "tests/data/photo_cases.h"
#include "tests/paths.h"

namespace tandem {
namespace {

DeterminismOptions options_for(const Transform& transform) {
  DeterminismOptions options;
  options.transform = transform;
  options.batch_size = 7;
  options.workers = 3;
  options.program = program_file;
  return options;
}

TEST(Determinism, EveryConfiguration_GivesSameBatches) {
  const Recipe cubic = compose({random_rotate({-30, 30}, Interpolation::cubic)});
  for (const Recipe& recipe : {test_recipe(), Recipe{}, cubic}) {
    const std::vector<DeterminismRow> rows =
        verify_determinism(ImageDataset(small_set(1200)), options_for(recipe));
    const auto gpus = static_cast<std::size_t>(cuda_device_count());
    ASSERT_EQ(rows.size(), 6 + (gpus == 0 ? 1 : 2 * gpus));
    EXPECT_TRUE(is_deterministic(rows));
    EXPECT_EQ(rows[0].label, "no workers");
    EXPECT_EQ(rows[3].label, "3 threads");
    EXPECT_EQ(rows[4].label, "3 processes");
    EXPECT_EQ(rows[5].label, "3 threads, resumed halfway");
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(rows[i].hash, rows[0].hash) << rows[i].label;
      EXPECT_EQ(rows[i].batches, 172 + 21) << "an epoch and an eighth";
      EXPECT_GT(rows[i].images_per_s, 0);
    }
    EXPECT_EQ(rows[6].skip_reason.empty(), gpus > 0);
  }
}

TEST(Determinism, Photographs_DecodedOrBad_GiveSameBatches) {
  const PhotoFolder folder(40, {3, 8, 21});
  const auto dataset = [&](bool decoded) { return PhotoDataset(folder.store(decoded), {"a", "b", "c"}); };
  std::string hash;
  for (const bool decoded : {true, false}) {
    const std::vector<DeterminismRow> rows =
        verify_determinism(dataset(decoded), options_for(training_transform(8)));
    ASSERT_EQ(rows.size(), 7u);
    EXPECT_TRUE(is_deterministic(rows));
    EXPECT_EQ(rows[0].batches, 6 + 1);
    EXPECT_EQ(rows[4].label, "3 processes");
    EXPECT_FALSE(rows[6].skip_reason.empty());
    if (decoded) hash = rows[0].hash;
    EXPECT_EQ(rows[5].hash, hash);
  }
  const auto other = verify_determinism(dataset(true), options_for(training_transform(9)));
  EXPECT_NE(other[0].hash, hash);
}

TEST(Determinism, SingleBatch_Works) {
  DeterminismOptions options = options_for(test_recipe());
  options.workers = 1;
  const std::vector<DeterminismRow> rows = verify_determinism(ImageDataset(small_set(5)), options);
  EXPECT_TRUE(is_deterministic(rows));
  EXPECT_EQ(rows[0].batches, 2);
  EXPECT_EQ(rows[2].label, "2 threads");
}

TEST(Determinism, Seed_ChangesTheHash) {
  const ImageDataset set(small_set(40));
  DeterminismOptions options = options_for(test_recipe());
  const std::string hash = verify_determinism(set, options)[0].hash;
  options.seed = 2;
  EXPECT_NE(verify_determinism(set, options)[0].hash, hash);
}

TEST(Determinism, Text_NamesTheDifferingBatch) {
  std::vector<DeterminismRow> rows{{.label = "no workers",
                                    .skip_reason = {},
                                    .batches = 15,
                                    .images_per_s = 12345,
                                    .hash = "0123456789abcdefXX"},
                                   {.label = "2 threads",
                                    .skip_reason = {},
                                    .batches = 15,
                                    .images_per_s = 1,
                                    .hash = "f",
                                    .same = false,
                                    .first_difference = 12},
                                   {.label = "augmented on cuda:0",
                                    .skip_reason = {},
                                    .batches = 15,
                                    .images_per_s = 1,
                                    .hash = "e",
                                    .same = true,
                                    .first_difference = 0,
                                    .max_pixel_difference = 1},
                                   {.label = "on a GPU", .skip_reason = "there is none"}};
  EXPECT_FALSE(is_deterministic(rows));
  const std::string text = determinism_text(rows, 10, {.width = 120});
  for (const char* part :
       {"12,345", "0123456789abcdef  same", "DIFFERENT from batch 3 of epoch 2 on", "within 1 level",
        "Not run on a GPU: there is none.", "1 of 3 configurations give different batches than no workers."})
    EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
  rows[1].max_pixel_difference = 7;
  EXPECT_NE(determinism_text(rows, 10, {.width = 120}).find("of epoch 2 on, by up to 7 levels"),
            std::string::npos);
  rows[1].same = true;
  EXPECT_NE(determinism_text(rows, 10).find("Every batch is the same"), std::string::npos);
}

TEST(Determinism, ZeroWorkers_Throws) {
  DeterminismOptions options = options_for({});
  options.workers = 0;
  EXPECT_EQ(error_text([&] { verify_determinism(ImageDataset(small_set(5)), options); }),
            "[verify-determinism] expected at least 1 worker, got 0");
}

}  // namespace
}  // namespace tandem
