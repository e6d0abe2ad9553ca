// The program that trains is a script here; tests/apps/program_test.cpp trains.
#include "tandem/study/rank_determinism.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tandem/study/determinism.h"
#include "tests/core/error_text.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

// $5 is the number of ranks, $7 the run folder.
RankRunOptions options_for(const TempFolder& folder, const std::string& script) {
  const std::filesystem::path program = folder / "program";
  std::ofstream(program) << "#!/bin/sh\nmkdir -p $7\n" << script << '\n';
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return {.ranks = {3, 2}, .shards = 4, .program = program.string()};
}

TEST(RankDeterminism, EqualModels_AreTheSame) {
  const TempFolder folder;
  const auto rows = verify_ranks(options_for(folder, "echo \"$3 $4\" > $7/best.safetensors"));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].ranks, 1);
  EXPECT_EQ(rows[2].ranks, 3);
  EXPECT_TRUE(is_deterministic(rows));
  EXPECT_NE(rank_determinism_text(rows, "4 shards").find("The model is the same"), std::string::npos);
}

TEST(RankDeterminism, OtherModel_IsShown) {
  const TempFolder folder;
  const auto rows = verify_ranks(options_for(folder, "echo $(($5 / 3)) > $7/best.safetensors"));
  EXPECT_FALSE(is_deterministic(rows));
  EXPECT_TRUE(rows[1].same);
  EXPECT_FALSE(rows[2].same);
  const std::string text = rank_determinism_text(rows, "4 shards");
  EXPECT_NE(text.find("DIFFERENT"), std::string::npos);
  EXPECT_NE(text.find("1 of 3 runs give another model than one process (4 shards)."), std::string::npos);
  EXPECT_NE(determinism_json({}, 1, rows).find("\"deterministic\": false"), std::string::npos);
}

TEST(RankDeterminism, FailedTraining_IsNamedWithItsError) {
  const TempFolder folder;
  EXPECT_EQ(
      error_text([&] {
        verify_ranks(options_for(folder, "echo note >&2; echo 'tandem: error: [train] no data' >&2; exit 1"));
      }),
      "[verify-determinism] training on one process failed: [train] no data");
}

}  // namespace
}  // namespace tandem
