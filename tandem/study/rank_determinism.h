// Verifies that the number of ranks does not change what is trained: some steps on each number of ranks, and
// the model files compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/text/table.h"

namespace tandem {

struct RankRunOptions {
  std::vector<int> ranks;  // besides one process
  std::int64_t shards = 1;
  std::vector<std::string> arguments;  // of the command train, but for ranks, shards and run folder
  std::string program = "/proc/self/exe";
  std::function<void(const std::string& what)> on_progress = {};
};

struct RankRow {
  int ranks = 1;
  double seconds = 0;  // of the whole run, with the start of its processes
  std::string hash;    // SHA-256 of the model file
  bool same = true;
};

// The first row, one process, is the reference for the others. Error, with what the program said, when a run
// fails.
std::vector<RankRow> verify_ranks(const RankRunOptions& options);

bool is_deterministic(const std::vector<RankRow>& rows);

// `what` was trained: "8 steps of 16 images, 4 shards".
std::string rank_determinism_text(const std::vector<RankRow>& rows, const std::string& what,
                                  const TextStyle& style = {});

}  // namespace tandem
