#include "tandem/process/cpu_affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <latch>
#include <thread>

namespace tandem {
namespace {

TEST(CpuAffinity, ProcessCpus_AreAmongThePermittedOnes) {
  const CpuList own = process_cpus(), permitted = permitted_cpus();
  ASSERT_FALSE(own.empty());
  EXPECT_TRUE(std::ranges::is_sorted(own));
  EXPECT_TRUE(std::ranges::includes(permitted, own));
  EXPECT_EQ(process_cpus(), own);  // permitted_cpus() has changed nothing
}

TEST(CpuAffinity, Scope_BindsTheThreadForAWhile) {
  const CpuList before = process_cpus();
  {
    const CpuScope scope({before.back()});
    EXPECT_EQ(process_cpus(), CpuList{before.back()});
    EXPECT_TRUE(std::ranges::includes(permitted_cpus(), before));  // also those it was not given
  }
  EXPECT_EQ(process_cpus(), before);
}

TEST(CpuAffinity, SetProcessCpus_MovesAllThreads) {
  const CpuList before = process_cpus(), last{before.back()};
  CpuList of_thread;
  std::latch started(1), moved(1);
  std::thread other([&] {
    started.count_down();
    moved.wait();
    of_thread = process_cpus();
  });
  started.wait();
  EXPECT_TRUE(set_process_cpus(last));
  EXPECT_EQ(process_cpus(), last);
  moved.count_down();
  other.join();
  EXPECT_EQ(of_thread, last);
  EXPECT_TRUE(set_process_cpus(before));
}

TEST(CpuAffinity, ImpossibleCpus_AreRefused) {
  const CpuList before = process_cpus();
  EXPECT_FALSE(set_process_cpus({}));
  EXPECT_EQ(process_cpus(), before);
  { const CpuScope scope({CPU_SETSIZE + 1}); }
  EXPECT_EQ(process_cpus(), before);
}

TEST(CpuAffinity, Core_HasItsFirstCpu) {
  for (const int cpu : process_cpus()) EXPECT_LE(core_of(cpu).first_cpu, cpu);
  EXPECT_EQ(core_of(100'000), (CpuCore{.package = 0, .first_cpu = 100'000}));  // the machine does not have it
}

}  // namespace
}  // namespace tandem
