// Process workers as an isolation boundary: killed, hung, crashing, orphaned, or never started.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tandem/data/loader/loader.h"
#include "tandem/dist/launch.h"
#include "tests/core/error_text.h"
#include "tests/core/sanitized.h"
#include "tests/data/loader_cases.h"
#include "tests/data/test_program.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

// Sanitizer runtimes do not work with a limited address space.
constexpr bool sanitized = address_sanitized || thread_sanitized;

// CPUs a thread or process may run on.
int allowed_cpus(pid_t pid) {
  cpu_set_t set;
  return sched_getaffinity(pid, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
}

// Compares blocks with those of a loader without workers, and calls between(k) after the k-th.
template <class F>
void compare_blocks(Loader& loader, const ImageSet& set, const BatchPlan& plan, std::int64_t blocks,
                    F&& between) {
  Loader plain(detail::sample_store(set), plan, test_recipe(), {});
  std::int64_t epoch = 0, first = 0;
  for (std::int64_t k = 0; k < blocks; ++k) {
    const LoadedBlock block = loader.acquire(epoch, first), expected = plain.acquire(epoch, first);
    ASSERT_EQ(block.count, expected.count);
    std::vector<Loaded> got, wanted;
    append(block, set.image_size(), got);
    append(expected, set.image_size(), wanted);
    ASSERT_TRUE(got == wanted) << "epoch " << epoch << ", from position " << first;
    loader.release(block);
    plain.release(expected);
    first += block.count;
    if (first == plan.positions()) ++epoch, first = 0;
    between(k);
  }
}

TEST(LoaderProcesses, KilledWorkers_GiveTheSameBits) {
  const ImageSet set = small_set(600);
  const BatchPlan plan{.samples = 600, .batch_size = 64, .batches_per_epoch = 4000, .seed = 4};  // 500 blocks
  std::int64_t kills = 0, messages = 0;
  Loader loader(
      detail::sample_store(set), plan, test_recipe(),
      {.workers = 3, .kind = WorkerKind::process, .prefetch = 2, .on_message = [&](const std::string&) {
         ++messages;
       }});
  compare_blocks(loader, set, plan, 500, [&](std::int64_t k) {
    const auto pids = loader.worker_pids();
    if (pids.empty() || k % 5 == 0) return;
    kill(pids[philox({{static_cast<std::uint32_t>(k), 0, 0, 0}}, 6).word[0] % pids.size()], SIGKILL);
    ++kills;
  });
  EXPECT_GE(kills, 50);
  const LoaderStatistics statistics = loader.statistics();
  EXPECT_GE(statistics.replaced_workers, 30);  // some were killed twice, or not noticed yet
  EXPECT_LE(statistics.replaced_workers, kills);
  EXPECT_GE(messages, statistics.replaced_workers);
}

TEST(LoaderProcesses, HungWorkers_AreReplaced) {
  const ImageSet set = small_set(600);
  const BatchPlan plan{.samples = 600, .batch_size = 64, .batches_per_epoch = 4000, .seed = 4};
  std::vector<std::string> messages;
  Loader loader(detail::sample_store(set), plan, test_recipe(),
                {.workers = 2,
                 .kind = WorkerKind::process,
                 .worker_timeout_s = 0.3,
                 .on_message = [&](const std::string& text) { messages.push_back(text); }});
  std::size_t stopped = 0;
  compare_blocks(loader, set, plan, 60, [&](std::int64_t k) {
    if (k != 10 && k != 30) return;
    for (const pid_t pid : loader.worker_pids()) {
      kill(pid, SIGSTOP);
      ++stopped;
    }
  });
  EXPECT_GE(stopped, 2U);
  EXPECT_GE(loader.statistics().replaced_workers, 2);  // the others had no job, so nobody waited for them
  EXPECT_TRUE(std::any_of(messages.begin(), messages.end(), [](const std::string& text) {
    return text.find("has made no progress for ") != std::string::npos;
  }));
}

TEST(LoaderProcesses, SampleThatCrashesThreeWorkers_IsSkipped) {
  const ImageSet set = small_set(crashing_sample + 1);
  const BatchPlan plan{.samples = set.count(), .batch_size = 32, .seed = 4};
  for (const int workers : {1, 2, 8}) {
    std::vector<std::string> messages;
    Loader loader(detail::sample_store(set), plan, test_recipe(),
                  {.workers = workers,
                   .kind = WorkerKind::process,
                   .epochs = 12,
                   .on_message = [&](const std::string& text) { messages.push_back(text); }});
    for (std::int64_t epoch = 0; epoch < 12; ++epoch) {
      auto expected = expected_epoch(set, plan, test_recipe(), epoch);
      const auto at = std::find_if(expected.begin(), expected.end(),
                                   [](const Loaded& loaded) { return loaded.sample == crashing_sample; });
      ASSERT_NE(at, expected.end());
      *at = at + 1 == expected.end() ? expected.front() : *(at + 1);
      EXPECT_TRUE(load_epoch(loader, set, plan, epoch) == expected) << epoch;
    }
    const LoaderStatistics statistics = loader.statistics();
    ASSERT_EQ(statistics.skipped.size(), 1U);
    EXPECT_EQ(statistics.skipped[0].sample, crashing_sample);
    EXPECT_EQ(statistics.skipped[0].name, "sample 701");
    EXPECT_GE(statistics.replaced_workers, 3);
    EXPECT_LE(statistics.replaced_workers,
              workers == 1 ? 3 : 3 + workers);  // other workers read it before it was skipped
    EXPECT_EQ(std::count(messages.begin(), messages.end(),
                         "sample 701 crashed 3 workers and is skipped from now on"),
              1);
  }
}

// Two crashes per epoch do not make a sample skipped.
TEST(LoaderProcesses, FinishedBlock_ClearsItsCrashes) {
  const ImageSet set = small_set(flaky_sample + 1);
  const BatchPlan plan{.samples = set.count(), .batch_size = 32, .seed = 4};
  const TempFolder folder;
  const auto file = folder / "crashes";
  std::ofstream(file).close();
  ASSERT_EQ(setenv(flaky_file, file.c_str(), 1), 0);
  Loader loader(detail::sample_store(set), plan, test_recipe(),
                {.workers = 1, .kind = WorkerKind::process, .epochs = 1});
  const auto expected = expected_epoch(set, plan, test_recipe(), 0);
  for (int round = 1; round <= 4; ++round) {
    std::filesystem::resize_file(file, 2);
    EXPECT_TRUE(load_epoch(loader, set, plan, 0) == expected);
    EXPECT_EQ(loader.statistics().replaced_workers, 2 * round);
  }
  unsetenv(flaky_file);
  EXPECT_TRUE(loader.statistics().skipped.empty());
}

// OpenMP may bind the trainer's thread to one CPU; the workers can still use all.
TEST(LoaderProcesses, TrainerBoundByOpenMp_WorkersAreNot) {
  ASSERT_EQ(setenv("OMP_PROC_BIND", "true", 1), 0);
  const pid_t child = start_self({"bound-loader", std::to_string(allowed_cpus(0))}, {});
  unsetenv("OMP_PROC_BIND");
  EXPECT_EQ(wait_for(child), 0);
}

TEST(LoaderProcesses, WorkerException_ReachesTheTrainerWithItsSample) {
  const ImageSet set = small_set(throwing_sample + 1);
  const BatchPlan plan{.samples = set.count(), .batch_size = 32, .seed = 4};
  Loader loader(detail::sample_store(set), plan, test_recipe(), {.workers = 2, .kind = WorkerKind::process});
  const std::string text = error_text([&] {
    for (std::int64_t epoch = 0; epoch < 100; ++epoch) load_epoch(loader, set, plan, epoch);
  });
  EXPECT_EQ(text, "[loader] sample 702: no such pixel");
}

TEST(LoaderProcesses, ProgramThatIsNoWorker_ThrowsWithItsName) {
  const ImageSet set = small_set(50);
  const BatchPlan plan{.samples = 50, .batch_size = 5};
  const auto text = [&](const std::string& program) {
    return error_text([&] {
      Loader loader(detail::sample_store(set), plan, {},
                    {.workers = 2, .kind = WorkerKind::process, .program = program});
      loader.acquire(0, 0);
    });
  };
  EXPECT_EQ(text("/no/such/program"), "[process] cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(text("/proc/version"), "[process] cannot start /proc/version: Permission denied");
  const std::string quits = text("/bin/false");
  EXPECT_EQ(
      quits.rfind(
          "[loader] expected /bin/false to run as a worker, but it failed 3 times before it took a job", 0),
      0U)
      << quits;
  EXPECT_NE(quits.find("ended with status 1"), std::string::npos) << quits;
}

TEST(LoaderProcesses, ProgramWithoutRunWorker_StartsNoWorkers) {
  const ImageSet set = small_set(50);
  ASSERT_EQ(setenv(worker_marker, "1", 1), 0);
  const std::string text = error_text([&] {
    Loader(detail::sample_store(set), {.samples = 50}, {}, {.workers = 2, .kind = WorkerKind::process});
  });
  unsetenv(worker_marker);
  EXPECT_EQ(text.rfind("[loader] expected the program to call run_worker_if_asked()", 0), 0U) << text;
}

// From no descriptor at all to enough: first clear errors, then blocks, also when no descriptor was left for
// a worker's pidfd.
TEST(LoaderProcesses, TooFewDescriptors_ThrowAndNameTheLimit) {
  if (address_sanitized) GTEST_SKIP() << "UBSan opens a pipe to check the type of an object";
  const ImageSet set = small_set(50);
  const BatchPlan plan{.samples = 50, .batch_size = 5, .seed = 3};
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(lowest);
  int failures = 0, successes = 0;
  for (int room = 0; successes < 3 && room < 30; ++room) {
    const rlimit small{static_cast<rlim_t>(lowest + room), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    try {
      Loader loader(detail::sample_store(set), plan, test_recipe(),
                    {.workers = 2, .kind = WorkerKind::process, .epochs = 3});
      setrlimit(RLIMIT_NOFILE, &before);
      EXPECT_TRUE(load_epoch(loader, set, plan, 0) == expected_epoch(set, plan, test_recipe(), 0));
      for (const pid_t pid : loader.worker_pids()) kill(pid, SIGKILL);
      EXPECT_TRUE(load_epoch(loader, set, plan, 2) == expected_epoch(set, plan, test_recipe(), 2));
      ++successes;
    } catch (const Error& error) {
      setrlimit(RLIMIT_NOFILE, &before);
      EXPECT_NE(std::string(error.what()).find("Too many open files: raise the limit (ulimit -n)"),
                std::string::npos)
          << error.what();
      ++failures;
    }
  }
  EXPECT_GE(failures, 5);
  EXPECT_EQ(successes, 3);
  const int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  EXPECT_EQ(after, lowest);
}

TEST(LoaderProcesses, AddressSpaceLimit_IsNamed) {
  if (sanitized) GTEST_SKIP();
  const ImageSet set = small_set(50, 100, 100);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_AS, &small);
  const std::string text = error_text([&] {
    Loader(detail::sample_store(set), {.samples = 50, .batch_size = 50}, {},
           {.workers = 2, .kind = WorkerKind::process, .prefetch = 50});
  });
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(text.rfind("[shared memory] the loader's ring needs 26.", 0), 0U) << text;
  EXPECT_NE(text.find(": lower prefetch or raise the limit (ulimit -v "), std::string::npos) << text;
}

TEST(LoaderProcesses, KilledParent_LeavesNothingBehind) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // orphans become children of this process
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const pid_t parent = start_self({"loader-parent", std::to_string(fds[1])}, {fds[1]});
  close(fds[1]);
  pid_t workers[3] = {};
  ASSERT_EQ(read(fds[0], workers, sizeof(workers)), static_cast<ssize_t>(sizeof(workers)));
  close(fds[0]);
  for (const pid_t worker : workers) EXPECT_EQ(kill(worker, 0), 0);
  kill(workers[1], SIGSTOP);  // a stopped worker must end too
  kill(parent, SIGKILL);
  EXPECT_EQ(WTERMSIG(wait_for(parent)), SIGKILL);
  for (const pid_t worker : workers) {
    int status = 0;
    EXPECT_EQ(waitpid(worker, &status, 0), worker);  // hangs if it lives on
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_EQ(entry.path().filename().string().find("tandem"), std::string::npos);
}

TEST(LoaderProcesses, TrainerIsARank_WorkersAreNot) {
  std::vector<std::string> names;
  for (const std::string& entry : local_rank_environment({}, 1, 3, 77)) {
    const auto equals = entry.find('=');
    names.push_back(entry.substr(0, equals));
    ASSERT_EQ(setenv(names.back().c_str(), entry.c_str() + equals + 1, 1), 0);
  }
  EXPECT_EQ(detect_launch(process_environment()).launcher, Launcher::local);
  Environment left;
  for (const std::string& entry : worker_environment()) {
    const auto equals = entry.find('=');
    left.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) EXPECT_FALSE(left.contains(name)) << name;
  EXPECT_TRUE(left.contains("PATH"));
}

TEST(LoaderProcesses, RunWorker_BadArguments_Fails) {
  EXPECT_EQ(run_worker({"worker"}), 1);
  EXPECT_EQ(run_worker({"worker", "1", "2", "3", "4", "5", "6", "seven"}), 1);
}

}  // namespace

// Like the program's own worker, except for a few samples.
int loader_worker(const Words& words) {
  return run_worker(words, [](std::int32_t sample) {
    if (const char* file = sample == flaky_sample ? std::getenv(flaky_file) : nullptr)
      if (const auto left = std::filesystem::file_size(file); left > 0) {
        std::filesystem::resize_file(file, left - 1);
        raise(SIGKILL);
      }
    if (sample == crashing_sample) raise(SIGKILL);
    if (sample == throwing_sample) throw std::runtime_error("no such pixel");
  });
}

// loader-parent FD: writes the pids of its three workers to FD and waits to be killed.
int loader_parent(const Words& words) {
  const ImageSet set = small_set(600);
  Loader loader(detail::sample_store(set), {.samples = 600, .batch_size = 60}, test_recipe(),
                {.workers = 3, .kind = WorkerKind::process});
  std::vector<pid_t> pids;
  for (std::int64_t epoch = 0; pids.size() < 3; ++epoch) {
    loader.release(loader.acquire(epoch, 0));
    pids = loader.worker_pids();
  }
  if (write(std::stoi(words.at(1)), pids.data(), 3 * sizeof(pid_t)) < 0) return 1;
  while (true) pause();
}

// bound-loader CPUS: returns 0 when workers of both kinds may run on CPUS CPUs.
int bound_loader(const Words& words) {
  const int cpus = std::stoi(words.at(1));
  const ImageSet set = small_set(10);
  const BatchPlan plan{.samples = 10, .batch_size = 10};
  std::atomic<int> seen{0};
  Loader threads(detail::sample_store(set), plan, {},
                 {.workers = 1, .before_sample = [&](std::int32_t) { seen = allowed_cpus(0); }});
  threads.acquire(0, 0);
  Loader processes(detail::sample_store(set), plan, {}, {.workers = 1, .kind = WorkerKind::process});
  processes.acquire(0, 0);
  return seen == cpus && allowed_cpus(processes.worker_pids().at(0)) == cpus ? 0 : 1;
}

}  // namespace tandem
