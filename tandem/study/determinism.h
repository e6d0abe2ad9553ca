// Verifies on any data set that training sees the same bits regardless of the machine: compares the hash of
// every batch of one epoch and of the beginning of the next for several worker counts of both kinds, across a
// resume, and on the GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/data/batches.h"
#include "tandem/data/dataset.h"
#include "tandem/study/rank_determinism.h"
#include "tandem/text/table.h"

namespace tandem {

struct DeterminismOptions {
  Transform transform = digits_recipe();
  std::int64_t batch_size = 16;
  std::uint64_t seed = 1;
  int workers = 2;      // maximum number of threads, and number of processes
  std::string program;  // executable for process workers, as in LoaderOptions
  std::function<void(const std::string&)> on_message;
};

struct DeterminismRow {
  std::string label;        // "2 threads"
  std::string skip_reason;  // why it was not run; empty when it was
  std::int64_t batches = 0;
  double images_per_s = 0;             // including the hashing
  std::string hash;                    // combined over all batches
  bool same = true;                    // or within the allowed difference
  std::int64_t first_difference = -1;  // index of the first batch with different bits
  // Maximum difference in levels, set when only pixels differ.
  std::optional<int> max_pixel_difference = {};
};

// The first row, without workers, is the reference for the others. Only augmentation on a GPU with cubic
// rotation may differ, by one level. Transforms that resize are not verified on GPUs.
std::vector<DeterminismRow> verify_determinism(const Dataset& dataset, const DeterminismOptions& options);

bool is_deterministic(const std::vector<DeterminismRow>& rows);

// A table and a summary sentence; `steps` is the number of batches per epoch.
std::string determinism_text(const std::vector<DeterminismRow>& rows, std::int64_t steps,
                             const TextStyle& style = {});
// {"deterministic", "batches_per_epoch", "rows": [{"label", "batches", "images_per_s", "hash", "same", …}]},
// and, where ranks were compared, "ranks": [{"ranks", "seconds", "hash", "same"}].
std::string determinism_json(const std::vector<DeterminismRow>& rows, std::int64_t steps,
                             const std::vector<RankRow>& ranks = {});

}  // namespace tandem
