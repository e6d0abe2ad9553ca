// Process workers as an isolation boundary: killed, stopped, poisoned, orphaned, or never started.
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

#include "tandem/data/loader.h"
#include "tests/core/error_text.h"
#include "tests/data/loader_cases.h"
#include "tests/data/test_program.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // their runtimes do not live with limits on the address space
#else
constexpr bool sanitized = false;
#endif

// CPUs a thread or process may run on.
int allowed_cpus(pid_t pid) {
  cpu_set_t set;
  return sched_getaffinity(pid, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
}

// Loads blocks of random batches beside a loader without workers, and calls between(k) after the k-th.
template <class F>
void compare_blocks(Loader& loader, const ImageSet& set, const BatchPlan& plan, std::int64_t blocks,
                    F&& between) {
  Loader plain(set, plan, test_recipe(), {});
  std::int64_t epoch = 0, first = 0;
  for (std::int64_t k = 0; k < blocks; ++k) {
    const LoadedBlock block = loader.take(epoch, first), expected = plain.take(epoch, first);
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

TEST(LoaderProcesses, KillsThroughoutAnEpochChangeNothing) {
  const ImageSet set = small_set(600);
  const BatchPlan plan{.samples = 600, .batch_size = 64, .batches_per_epoch = 4000, .seed = 4};  // 500 blocks
  std::int64_t kills = 0, messages = 0;
  Loader loader(
      set, plan, test_recipe(),
      {.workers = 3, .kind = WorkerKind::process, .ahead = 2, .on_message = [&](const std::string&) {
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
  EXPECT_GE(statistics.replaced_workers, 30);  // some were killed twice, or not yet missed
  EXPECT_LE(statistics.replaced_workers, kills);
  EXPECT_GE(messages, statistics.replaced_workers);
}

TEST(LoaderProcesses, StoppedWorkersAreReplaced) {
  const ImageSet set = small_set(600);
  const BatchPlan plan{.samples = 600, .batch_size = 64, .batches_per_epoch = 4000, .seed = 4};
  std::vector<std::string> messages;
  Loader loader(set, plan, test_recipe(),
                {.workers = 2,
                 .kind = WorkerKind::process,
                 .worker_limit_s = 0.3,
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
  EXPECT_GE(loader.statistics().replaced_workers, 2);  // the others, while they do nothing, are not missed
  EXPECT_TRUE(std::any_of(messages.begin(), messages.end(), [](const std::string& text) {
    return text.find("has made no progress for ") != std::string::npos;
  }));
}

TEST(LoaderProcesses, ASampleThatKillsThreeWorkersIsLeftOut) {
  const ImageSet set = small_set(deadly_sample + 1);
  const BatchPlan plan{.samples = set.count(), .batch_size = 32, .seed = 4};
  for (const int workers : {1, 2, 8}) {
    std::vector<std::string> messages;
    Loader loader(set, plan, test_recipe(),
                  {.workers = workers,
                   .kind = WorkerKind::process,
                   .epochs = 12,
                   .on_message = [&](const std::string& text) { messages.push_back(text); }});
    for (std::int64_t epoch = 0; epoch < 12; ++epoch) {
      auto expected = expected_epoch(set, plan, test_recipe(), epoch);
      const auto at = std::find_if(expected.begin(), expected.end(),
                                   [](const Loaded& loaded) { return loaded.sample == deadly_sample; });
      ASSERT_NE(at, expected.end());
      *at = at + 1 == expected.end() ? expected.front() : *(at + 1);
      EXPECT_TRUE(load_epoch(loader, set, plan, epoch) == expected) << epoch;
    }
    const LoaderStatistics statistics = loader.statistics();
    ASSERT_EQ(statistics.skipped.size(), 1U);
    EXPECT_EQ(statistics.skipped[0].sample, deadly_sample);
    EXPECT_EQ(statistics.skipped[0].name, "sample 701 of the training images");
    EXPECT_GE(statistics.replaced_workers, 3);
    EXPECT_LE(statistics.replaced_workers,
              workers == 1 ? 3 : 3 + workers);  // others met it before it was known
    EXPECT_EQ(std::count(messages.begin(), messages.end(),
                         "sample 701 of the training images ended 3 workers and is left out from now on"),
              1);
  }
}

// Two deaths an epoch, again and again, are no reason to leave a sample out.
TEST(LoaderProcesses, DeathsAreForgottenWhenTheBlockIsDone) {
  const ImageSet set = small_set(fickle_sample + 1);
  const BatchPlan plan{.samples = set.count(), .batch_size = 32, .seed = 4};
  const TempFolder folder;
  const auto file = folder / "deaths";
  std::ofstream(file).close();
  ASSERT_EQ(setenv(fickle_file, file.c_str(), 1), 0);
  Loader loader(set, plan, test_recipe(), {.workers = 1, .kind = WorkerKind::process, .epochs = 1});
  const auto expected = expected_epoch(set, plan, test_recipe(), 0);
  for (int round = 1; round <= 4; ++round) {
    std::filesystem::resize_file(file, 2);
    EXPECT_TRUE(load_epoch(loader, set, plan, 0) == expected);
    EXPECT_EQ(loader.statistics().replaced_workers, 2 * round);
  }
  unsetenv(fickle_file);
  EXPECT_TRUE(loader.statistics().skipped.empty());
}

// Where OpenMP binds the trainer's thread to one CPU, the workers still have all.
TEST(LoaderProcesses, WorkersAreNotBoundWithTheTrainer) {
  ASSERT_EQ(setenv("OMP_PROC_BIND", "true", 1), 0);
  const pid_t child = start_self({"bound-loader", std::to_string(allowed_cpus(0))}, {});
  unsetenv("OMP_PROC_BIND");
  EXPECT_EQ(wait_for(child), 0);
}

TEST(LoaderProcesses, AnExceptionReachesTheTrainerWithItsSample) {
  const ImageSet set = small_set(throwing_sample + 1);
  const BatchPlan plan{.samples = set.count(), .batch_size = 32, .seed = 4};
  Loader loader(set, plan, test_recipe(), {.workers = 2, .kind = WorkerKind::process});
  const std::string text = error_text([&] {
    for (std::int64_t epoch = 0; epoch < 100; ++epoch) load_epoch(loader, set, plan, epoch);
  });
  EXPECT_EQ(text, "[loader] sample 702 of the training images: no such pixel");
}

TEST(LoaderProcesses, ProgramsThatAreNoWorkerAreNamed) {
  const ImageSet set = small_set(50);
  const BatchPlan plan{.samples = 50, .batch_size = 5};
  const auto text = [&](const std::string& program) {
    return error_text([&] {
      Loader loader(set, plan, {}, {.workers = 2, .kind = WorkerKind::process, .program = program});
      loader.take(0, 0);
    });
  };
  EXPECT_EQ(text("/no/such/program"),
            "[loader] cannot start a worker: /no/such/program: No such file or directory");
  EXPECT_EQ(text("/proc/version"), "[loader] cannot start a worker: /proc/version: Permission denied");
  const std::string quits = text("/bin/false");
  EXPECT_EQ(
      quits.rfind(
          "[loader] expected /bin/false to run as a worker, but it failed 3 times before it took a job", 0),
      0U)
      << quits;
  EXPECT_NE(quits.find("ended with status 1"), std::string::npos) << quits;
}

TEST(LoaderProcesses, AProgramThatForgetsToBeAWorkerStartsNoOthers) {
  const ImageSet set = small_set(50);
  ASSERT_EQ(setenv(worker_mark, "1", 1), 0);
  const std::string text =
      error_text([&] { Loader(set, {.samples = 50}, {}, {.workers = 2, .kind = WorkerKind::process}); });
  unsetenv(worker_mark);
  EXPECT_EQ(text.rfind("[loader] expected the program to call run_worker()", 0), 0U) << text;
}

// From no descriptor at all to enough: a clear line each time, then blocks, even where there was none left to
// be told of a worker's end.
TEST(LoaderProcesses, NoMoreDescriptorsIsAClearError) {
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
      Loader loader(set, plan, test_recipe(), {.workers = 2, .kind = WorkerKind::process, .epochs = 3});
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

TEST(LoaderProcesses, ALimitOnTheAddressSpaceIsNamed) {
  if (sanitized) GTEST_SKIP();
  const ImageSet set = small_set(50, 100, 100);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_AS, &small);
  const std::string text = error_text([&] {
    Loader(set, {.samples = 50, .batch_size = 50}, {},
           {.workers = 2, .kind = WorkerKind::process, .ahead = 50});
  });
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(text.rfind("[loader] the ring needs 26.", 0), 0U) << text;
  EXPECT_NE(text.find(": lower --ahead or raise the limit (ulimit -v "), std::string::npos) << text;
}

TEST(LoaderProcesses, NothingIsLeftWhenTheParentIsKilled) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // orphans come here, to be looked at
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const pid_t parent = start_self({"loader-parent", std::to_string(fds[1])}, {fds[1]});
  close(fds[1]);
  pid_t workers[3] = {};
  ASSERT_EQ(read(fds[0], workers, sizeof(workers)), static_cast<ssize_t>(sizeof(workers)));
  close(fds[0]);
  for (const pid_t worker : workers) EXPECT_EQ(kill(worker, 0), 0);
  kill(workers[1], SIGSTOP);  // even one that cannot act by itself
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

TEST(LoaderProcesses, WordsNobodyWouldGiveAreRefused) {
  EXPECT_EQ(run_worker({"worker"}), 1);
  EXPECT_EQ(run_worker({"worker", "1", "2", "3", "4", "5", "6", "seven"}), 1);
}

}  // namespace

// As the program's own worker, but for a few samples.
int loader_worker(const Words& words) {
  return run_worker(words, [](std::int32_t sample) {
    if (const char* file = sample == fickle_sample ? std::getenv(fickle_file) : nullptr)
      if (const auto left = std::filesystem::file_size(file); left > 0) {
        std::filesystem::resize_file(file, left - 1);
        raise(SIGKILL);
      }
    if (sample == deadly_sample) raise(SIGKILL);
    if (sample == throwing_sample) throw std::runtime_error("no such pixel");
  });
}

// loader-parent FD: writes the numbers of its three workers there and waits to be killed.
int loader_parent(const Words& words) {
  const ImageSet set = small_set(600);
  Loader loader(set, {.samples = 600, .batch_size = 60}, test_recipe(),
                {.workers = 3, .kind = WorkerKind::process});
  std::vector<pid_t> pids;
  for (std::int64_t epoch = 0; pids.size() < 3; ++epoch) {
    loader.release(loader.take(epoch, 0));
    pids = loader.worker_pids();
  }
  if (write(std::stoi(words.at(1)), pids.data(), 3 * sizeof(pid_t)) < 0) return 1;
  while (true) pause();
}

// bound-loader CPUS: 0 when workers of both kinds may run on so many.
int bound_loader(const Words& words) {
  const int cpus = std::stoi(words.at(1));
  const ImageSet set = small_set(10);
  const BatchPlan plan{.samples = 10, .batch_size = 10};
  std::atomic<int> seen{0};
  Loader threads(set, plan, {},
                 {.workers = 1, .before_sample = [&](std::int32_t) { seen = allowed_cpus(0); }});
  threads.take(0, 0);
  Loader processes(set, plan, {}, {.workers = 1, .kind = WorkerKind::process});
  processes.take(0, 0);
  return seen == cpus && allowed_cpus(processes.worker_pids().at(0)) == cpus ? 0 : 1;
}

}  // namespace tandem
