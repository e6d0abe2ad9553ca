// LocalRanks: the processes of `tandem train --ranks N`, which share the CPUs of this machine and exchange
// gradients through shared memory.
#pragma once

#include <string>
#include <vector>

namespace tandem {

/// The exit status of a program that lost a rank: starting it again goes on from the last checkpoint.
inline constexpr int lost_rank_status = 75;

struct LocalRanksOptions {
  int ranks = 2;
  std::vector<std::string> arguments;  // of every rank; begins with argv[0]
  std::string program = "/proc/self/exe";
  double grace_s = 2;  // how long ranks may go on after one has ended badly, before they are killed
};

// Starts the ranks and waits for them. Each gets its share of the CPUs, and rank 0 gets standard output.
// SIGTERM, SIGINT, SIGHUP and SIGUSR1 are passed on to one rank, which tells the others; a second SIGTERM or
// SIGINT kills all. Says which rank was ended by a signal if no other rank can. Returns the exit status: that
// of the first rank that failed, lost_rank_status if a signal ended one, or that of rank 0. Error when a rank
// cannot be started.
int run_local_ranks(const LocalRanksOptions& options);

// Called by a rank: it gets SIGTERM when the process that started it ends.
void end_with_parent();

}  // namespace tandem
