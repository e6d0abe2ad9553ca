#include "tandem/process/process_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class ProcessTree : public testing::Test {
 protected:
  // A process whose four times are that many ticks each.
  void add(int process, int ticks, const std::string& children, const std::string& name = "a b) (c") {
    const fs::path folder = proc_ / std::to_string(process);
    fs::create_directories(folder / "task" / std::to_string(process));
    std::ofstream(folder / "stat") << process << " (" << name << ") R 1 1 1 0 -1 4194304 100 0 0 0 " << ticks
                                   << ' ' << ticks << ' ' << ticks << ' ' << ticks << " 20 0 1 0 12345 0 0\n";
    std::ofstream(folder / "task" / std::to_string(process) / "children") << children;
  }

  TempFolder folder_;
  fs::path proc_ = folder_ / "proc";
  double tick_ = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
};

TEST_F(ProcessTree, AllBelowTheProcess_AreCounted) {
  add(10, 1, "11 12 ");
  add(11, 10, "13 ");
  add(12, 100, "");
  add(13, 1000, "");
  add(20, 50000, "");
  EXPECT_DOUBLE_EQ(tree_cpu_seconds(10, proc_).value(), 4 * 1111 * tick_);
  EXPECT_DOUBLE_EQ(tree_cpu_seconds(11, proc_).value(), 4 * 1010 * tick_);
}

TEST_F(ProcessTree, ProcessThatHasEnded_IsLeftOut) {
  add(10, 1, "11 99 ");
  add(11, 10, "10 ");  // a number that is used again
  EXPECT_DOUBLE_EQ(tree_cpu_seconds(10, proc_).value(), 4 * 11 * tick_);
  EXPECT_FALSE(tree_cpu_seconds(99, proc_));
  std::ofstream(proc_ / "10" / "stat") << "10 (cut off) R 1 1";
  EXPECT_FALSE(tree_cpu_seconds(10, proc_));
}

TEST(ProcessTreeOfThisProcess, IsTold) {
  EXPECT_GE(tree_cpu_seconds(::getpid()).value_or(-1), 0);
}

}  // namespace
}  // namespace tandem
