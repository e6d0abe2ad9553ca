#include "tandem/core/parallel.h"

#include "tandem/core/parallel_shares.h"
#include "tandem/core/spin.h"
#include "tandem/core/thread_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

// Sets the team size to four for each test and restores it afterwards.
class ParallelTest : public testing::Test {
 protected:
  void SetUp() override { set_thread_count(4); }
  void TearDown() override { set_thread_count(usable_cpus()); }

  static std::vector<std::pair<std::int64_t, std::int64_t>> ranges_of(std::int64_t count,
                                                                      std::int64_t grain) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    std::mutex mutex;
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard lock(mutex);
      ranges.emplace_back(begin, end);
    });
    std::sort(ranges.begin(), ranges.end());
    return ranges;
  }
};

TEST_F(ParallelTest, ParallelFor_CoversEveryIndexOnceInMultiplesOfTheGrain) {
  for (std::int64_t count : {1, 2, 3, 7, 64, 100, 1001})
    for (std::int64_t grain : {1, 3, 64, 5000}) {
      std::int64_t expected_begin = 0;
      for (const auto& [begin, end] : ranges_of(count, grain)) {
        EXPECT_EQ(begin, expected_begin);
        EXPECT_LT(begin, end);
        EXPECT_EQ(begin % grain, 0);
        EXPECT_TRUE(end == count || end % grain == 0);
        expected_begin = end;
      }
      EXPECT_EQ(expected_begin, count);
    }
}

TEST_F(ParallelTest, ParallelTasks_CoverEveryIndexOnceWithOneBodyPerThread) {
  for (const std::int64_t count : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
    std::atomic<int> made{0}, ranges{0};
    parallel_tasks(count, 3, [&] {
      ++made;
      return [&, own = 0](std::int64_t begin, std::int64_t end) mutable {
        EXPECT_EQ(begin % 3, 0);
        EXPECT_TRUE(end - begin == 3 || end == count);
        EXPECT_GE(++own, 1);
        ++ranges;
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      };
    });
    for (const std::atomic<int>& times : visits) EXPECT_EQ(times, 1);
    EXPECT_EQ(ranges, (count + 2) / 3);
    EXPECT_LE(made, thread_count());
  }
}

TEST_F(ParallelTest, ParallelShares_CoverEveryIndexOnceAlsoBesideASlowThread) {
  for (const int threads : {1, 2, 5})
    for (const std::int64_t count : {0, 1, 2, 7, 16, 203}) {
      set_thread_count(threads);
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      std::vector<std::atomic<int>> inside(static_cast<std::size_t>(threads));
      std::atomic<std::int64_t> left{count};
      parallel_shares(count, [&](IndexRange range, std::int64_t thread) {
        EXPECT_EQ(inside.at(static_cast<std::size_t>(thread))++, 0);
        for (std::int64_t i = range.begin; i < range.end; ++i) ++visits[static_cast<std::size_t>(i)];
        left -= range.count();
        // The thread with the first index ends last: others must take over the rest of its share.
        if (range.begin == 0 && threads > 1 && count >= 2 * threads)
          while (left > 0) std::this_thread::yield();
        --inside[static_cast<std::size_t>(thread)];
      });
      for (std::int64_t i = 0; i < count; ++i)
        EXPECT_EQ(visits[static_cast<std::size_t>(i)], 1) << i << " of " << count;
    }
}

// What the ranges of every stage have done.
struct Stages {
  explicit Stages(std::vector<std::int64_t> all)
      : counts(std::move(all)), begun(counts.size()), ended(counts.size()) {}

  bool has_begun(std::size_t stage) const { return begun[stage] == counts[stage]; }
  bool has_ended(std::size_t stage) const { return ended[stage] == counts[stage]; }

  std::vector<std::int64_t> counts;
  std::vector<std::atomic<std::int64_t>> begun, ended;
};

TEST_F(ParallelTest, ParallelStages_BeginInOrder) {
  for (const int threads : {1, 2, 5})
    for (const std::vector<std::int64_t>& counts :
         {std::vector<std::int64_t>{}, {3}, {1, 1, 1, 1}, {203, 2, 0, 16, 5, 64}}) {
      set_thread_count(threads);
      Stages stages(counts);
      std::vector<std::atomic<int>> visits(std::size_t{6} * 203);
      parallel_stages(stages.counts, [&](std::size_t stage, IndexRange range, std::int64_t thread) {
        EXPECT_LT(thread, threads);
        // A range has begun once it is taken, shortly before this function counts it.
        if (stage >= 1) spin_until([&] { return stages.has_begun(stage - 1); });
        for (std::size_t before = 0; before + 2 <= stage; ++before) EXPECT_TRUE(stages.has_ended(before));
        stages.begun[stage] += range.count();
        for (std::int64_t i = range.begin; i < range.end; ++i)
          ++visits[stage * 203 + static_cast<std::size_t>(i)];
        stages.ended[stage] += range.count();
      });
      for (std::size_t stage = 0; stage < counts.size(); ++stage)
        for (std::int64_t i = 0; i < counts[stage]; ++i)
          EXPECT_EQ(visits[stage * 203 + static_cast<std::size_t>(i)], 1) << stage << ", " << i;
    }
}

TEST_F(ParallelTest, ParallelStages_SlowThread_DelaysTheStageAfterTheNextOnly) {
  for (const int threads : {2, 5}) {
    set_thread_count(threads);
    Stages stages({16, 16, 16});
    std::atomic<bool> is_late{false};
    parallel_stages(stages.counts, [&](std::size_t stage, IndexRange range, std::int64_t) {
      stages.begun[stage] += range.count();
      // The thread with the first index goes on when the others have done all that they can without it.
      if (stage == 0 && range.begin == 0) {
        spin_until([&] { return stages.has_ended(1); });
        is_late = stages.begun[2] == 0;
      }
      stages.ended[stage] += range.count();
    });
    EXPECT_TRUE(is_late);
  }
}

TEST_F(ParallelTest, EmptyRange_CallsNothing) {
  EXPECT_TRUE(ranges_of(0, 1).empty());
  EXPECT_TRUE(ranges_of(-5, 1).empty());
}

TEST_F(ParallelTest, GrainBelowOne_IsOne) {
  EXPECT_EQ(ranges_of(3, 0).back().second, 3);
}

TEST_F(ParallelTest, FewerThanTwoGrains_RunOnTheCallingThread) {
  const auto caller = std::this_thread::get_id();
  parallel_for(10, 10, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 10);
  });
}

TEST_F(ParallelTest, UsesTheConfiguredNumberOfThreads) {
  EXPECT_EQ(thread_count(), 4);
  EXPECT_EQ(ranges_of(4000, 1).size(), 4u);
  EXPECT_EQ(ranges_of(2, 1).size(), 2u);
}

TEST_F(ParallelTest, WritesAreVisibleAfterwards) {
  std::vector<int> values(100000, 0);
  for (int round = 0; round < 20; ++round)
    parallel_for(static_cast<std::int64_t>(values.size()), 1000, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++values[i];
    });
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), 2000000);
}

TEST_F(ParallelTest, BodyThrows_ExceptionIsRethrown) {
  for (std::int64_t bad : {0, 500, 999})
    EXPECT_THROW(parallel_for(1000, 1,
                              [&](std::int64_t begin, std::int64_t end) {
                                if (begin <= bad && bad < end) throw std::out_of_range("bad");
                              }),
                 std::out_of_range);
  EXPECT_THROW(parallel_for(1000, 1, [](std::int64_t, std::int64_t) { throw std::out_of_range("all"); }),
               std::out_of_range);
  EXPECT_EQ(ranges_of(1000, 1).back().second, 1000);  // the team is still usable
}

TEST_F(ParallelTest, NestedCall_RunsOnTheCallingThread) {
  std::atomic<std::int64_t> total{0};
  parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto caller = std::this_thread::get_id();
    parallel_for(100, 1, [&](std::int64_t inner_begin, std::int64_t inner_end) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      total += (inner_end - inner_begin) * (end - begin);
    });
  });
  EXPECT_EQ(total, 800);
}

TEST_F(ParallelTest, ThreadLimit_AppliesToItsScopeAndThreadOnly) {
  {
    const ThreadLimit two(2);
    EXPECT_EQ(thread_count(), 2);
    {
      const ThreadLimit one(1);
      EXPECT_EQ(thread_count(), 1);
      EXPECT_EQ(ranges_of(1000, 1).size(), 1u);
      const ThreadLimit wider(3);  // an inner limit does not raise an outer one
      EXPECT_EQ(thread_count(), 1);
    }
    EXPECT_EQ(thread_count(), 2);
    int elsewhere = 0;
    std::thread([&] { elsewhere = thread_count(); }).join();
    EXPECT_EQ(elsewhere, 4);
  }
  EXPECT_EQ(thread_count(), 4);
  const ThreadLimit many(100);
  EXPECT_EQ(thread_count(), 4);
}

TEST_F(ParallelTest, SmallRange_KeepsTheThreadsOfTheTeam) {
  std::mutex mutex;
  const auto members = [&](std::int64_t count) {
    std::set<std::thread::id> ids;
    parallel_for(count, 1, [&](std::int64_t, std::int64_t) {
      std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    return ids;
  };
  const std::set<std::thread::id> all = members(4);
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(members(2).size(), 2u);
  EXPECT_EQ(members(4), all);
}

TEST_F(ParallelTest, ConcurrentCallers_AllComplete) {
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round)
        parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, 40000);
}

TEST_F(ParallelTest, InvalidCounts_Throw) {
  EXPECT_EQ(error_text([] { set_thread_count(0); }),
            "[threads] expected a thread count from 1 to 4096, got 0");
  EXPECT_EQ(error_text([] { ThreadLimit limit(0); }),
            "[threads] expected a thread limit of 1 or more, got 0");
  EXPECT_EQ(thread_count(), 4);
}

TEST(Parallel, UsableCpus_IsAtLeastOne) {
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

TEST(ThreadCount, Environment_SetsTheDefault) {
  const auto with = [](const char* omp, const char* slurm) {
    const auto set = [](const char* name, const char* value) {
      if (value)
        setenv(name, value, 1);
      else
        unsetenv(name);
    };
    const char* const before = std::getenv("OMP_NUM_THREADS");
    const std::string omp_before = before ? before : "";
    set("OMP_NUM_THREADS", omp);
    set("SLURM_CPUS_PER_TASK", slurm);
    const int count = default_thread_count();
    set("OMP_NUM_THREADS", before ? omp_before.c_str() : nullptr);
    set("SLURM_CPUS_PER_TASK", nullptr);
    return count;
  };
  EXPECT_EQ(with(nullptr, nullptr), usable_cpus());
  EXPECT_EQ(with(nullptr, "7"), 7);
  EXPECT_EQ(with("3", "7"), 3);
  EXPECT_EQ(with("5,2", nullptr), 5);
  for (const char* const text : {"many", "", "0", "-4", "3x", "99999999999"})
    EXPECT_EQ(with(text, nullptr), usable_cpus()) << text;
}

TEST(ThreadCount, UsableCpus_CanBeSetLater) {
  const int before = usable_cpus();
  const std::string omp = std::getenv("OMP_NUM_THREADS") ? std::getenv("OMP_NUM_THREADS") : "";
  unsetenv("OMP_NUM_THREADS");
  set_usable_cpus(3);
  EXPECT_EQ(usable_cpus(), 3);
  EXPECT_EQ(default_thread_count(), 3);
  setenv("OMP_NUM_THREADS", "5", 1);  // what the user says wins
  set_usable_cpus(2);
  EXPECT_EQ(default_thread_count(), 5);
  EXPECT_TRUE(is_thread_count_given());
  EXPECT_THROW(set_usable_cpus(0), Error);
  if (omp.empty())
    unsetenv("OMP_NUM_THREADS");
  else
    setenv("OMP_NUM_THREADS", omp.c_str(), 1);
  set_usable_cpus(before);
}

}  // namespace
}  // namespace tandem
