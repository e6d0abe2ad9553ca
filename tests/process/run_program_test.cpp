#include "tandem/process/run_program.h"

#include <gtest/gtest.h>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

TEST(RunProgram, RunsInItsFolderWithoutAShell) {
  const TempFolder folder;
  EXPECT_EQ(run_program({"touch", "a b;c", "$HOME"}, {.folder = folder.path()}), "");
  EXPECT_TRUE(std::filesystem::exists(folder / "a b;c"));
  EXPECT_TRUE(std::filesystem::exists(folder / "$HOME"));
  EXPECT_EQ(folder.count(), 2u);
}

TEST(RunProgram, Failure_ReturnsTheReason) {
  const TempFolder folder;
  EXPECT_EQ(run_program({"no-such-program-at-all"}, {.folder = folder.path()}),
            "no-such-program-at-all is not installed");
  EXPECT_EQ(run_program({"false"}, {.folder = folder.path()}), "false ended with status 1");
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}, {.folder = folder.path()}), "sh was ended by signal 9");
  EXPECT_EQ(run_program({"sleep", "1000"}, {.folder = folder.path(), .timeout_s = 0}),
            "sleep took longer than 0 seconds");
}

}  // namespace
}  // namespace tandem
