// The promise that a training sees the same bits whatever the machine does, put to the test on any data: the
// fingerprint of every batch of an epoch, and of the next one's beginning, for several numbers of workers of
// both kinds, over a stop and a resume, and on the GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/data/batches.h"
#include "tandem/data/image_set.h"
#include "tandem/data/photo_store.h"
#include "tandem/report/table.h"

namespace tandem {

struct DeterminismOptions {
  Recipe recipe = digits_recipe();  // of images of one size
  std::int64_t batch_size = 16;
  std::uint64_t seed = 1;
  int workers = 2;      // the greatest number of threads, and the number of processes
  std::string program;  // what process workers execute, as in LoaderOptions
  std::function<void(const std::string&)> on_message;
};

struct DeterminismRow {
  std::string what;      // "2 threads"
  std::string left_out;  // why it was not run
  std::int64_t batches = 0;
  double images_per_s = 0;             // the making of fingerprints included
  std::string hash;                    // of all batches
  bool same = true;                    // or within what is allowed
  std::int64_t first_difference = -1;  // the first batch that is not the same bits
  // Of the pixels, where batches differ but samples and labels do not.
  std::optional<int> greatest_difference = {};
};

// `images` on the CPU. The first row, without workers, is what the others are held to. Only a GPU that
// augments, and only with cubic rotation, may differ, by one level.
std::vector<DeterminismRow> verify_determinism(const ImageSet& images, const DeterminismOptions& options);

// The same of photographs, on the CPU, by their own recipe.
std::vector<DeterminismRow> verify_determinism(std::shared_ptr<const PhotoStore> photos,
                                               const PhotoRecipe& recipe, const DeterminismOptions& options);

bool is_deterministic(const std::vector<DeterminismRow>& rows);

// A table and a sentence; `steps` is the number of batches of an epoch.
std::string determinism_text(const std::vector<DeterminismRow>& rows, std::int64_t steps,
                             const TextStyle& style = {});

}  // namespace tandem
