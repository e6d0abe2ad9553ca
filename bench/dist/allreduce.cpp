// Measures sums over ranks for bench/allreduce:
//   dist_allreduce FLOATS ROUNDS            as a rank that srun, mpirun or this program started
//   dist_allreduce --ranks N FLOATS ROUNDS  starts N local ranks
// Rank 0 prints the milliseconds of each sum to standard error; before each, all ranks meet at a barrier.
#include <poll.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/core/error.h"
#include "tandem/dist/connect_group.h"
#include "tandem/process/child_process.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

int run_rank(const Words& words) {
  const std::int64_t floats = std::stoll(words[0]), rounds = std::stoll(words[1]);
  const auto group = connect_group(detect_launch(process_environment()), {});
  Partials mine{.shards = group->place().size, .sums = {Tensor::empty({floats}, DType::f32)}};
  const Tensor out = Tensor::empty({floats}, DType::f32);
  std::memset(mine.sums[0].bytes(), 0, static_cast<std::size_t>(floats) * sizeof(float));
  for (std::int64_t round = -2; round < rounds; ++round) {  // two to warm up
    group->barrier();
    const Stopwatch watch;
    group->reduce(mine, out).wait();
    const double elapsed_ms = watch.elapsed_ms();
    if (round >= 0 && group->place().rank == 0) std::fprintf(stderr, "%.4f\n", elapsed_ms);
  }
  return 0;
}

int start_ranks(int ranks, const Words& words) {
  const LocalSegment segment(ranks);
  std::vector<ChildProcess> processes;
  Words arguments{"dist_allreduce"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  for (int rank = 0; rank < ranks; ++rank) {
    processes.emplace_back("/proc/self/exe", arguments,
                           LaunchOptions{.fds = {segment.fd()},
                                         .environment = local_rank_environment(process_environment(), rank,
                                                                               ranks, segment.fd())});
    segment.set_process(rank, processes.back().pid());
  }
  int status = 0;
  for (ChildProcess& process : processes) {
    auto how = process.ended();
    for (; !how; how = process.ended()) {
      pollfd end{process.end_fd(), POLLIN, 0};
      poll(&end, 1, 10);
    }
    if (*how != "ended with status 0") status = 1;
  }
  return status;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  const tandem::Words words(argv + 1, argv + argc);
  try {
    if (words.size() == 4 && words[0] == "--ranks")
      return tandem::start_ranks(std::stoi(words[1]), {words[2], words[3]});
    if (words.size() == 2) return tandem::run_rank(words);
    std::fputs("usage: dist_allreduce [--ranks N] FLOATS ROUNDS\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_allreduce: error: %s\n", error.what());
    return 1;
  }
}
