// The program as a worker process of the loader.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tests/apps/program.h"
#include "tests/data/loader_cases.h"
#include "tests/paths.h"

namespace tandem {
namespace {

TEST(WorkerCommand, ProcessWorkers_GiveTheReferenceBits) {
  const ImageSet set = small_set(600);
  const BatchPlan plan{.samples = 600, .batch_size = 20, .seed = 5};
  Loader loader(detail::sample_store(set), plan, test_recipe(),
                {.workers = 2, .kind = WorkerKind::process, .epochs = 1, .program = program_file});
  EXPECT_TRUE(load_epoch(loader, set, plan, 0) == expected_epoch(set, plan, test_recipe(), 0));
  EXPECT_EQ(loader.statistics().replaced_workers, 0);
}

TEST(WorkerCommand, CalledByUser_IsAnError) {
  const ProgramResult result = run_program({"worker"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "tandem: error: [worker] expected to be started by a loader, got 1 arguments\n");
}

// The loader replaces it, so that the run may succeed: then no error was printed.
TEST(WorkerCommand, WorkerThatCannotStart_SaysWhy_WithoutAnError) {
  const ProgramResult result =
      run_program({"worker", std::to_string(::getpid()), "3", "100", "101", "102", "103", "104"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("worker 3 (process ")) << result.err;
  EXPECT_NE(result.err.find("): [shared memory] "), std::string::npos) << result.err;
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

}  // namespace
}  // namespace tandem
