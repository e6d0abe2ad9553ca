// The figures of a pretraining run.
#pragma once

#include <cstdint>

namespace tandem {

/// Figures of some steps of contrastive training, and of the embeddings of the last of them.
struct PretrainRecord {
  std::int64_t step = 0;  ///< the last of these steps, from 1
  double loss = 0;        ///< NT-Xent
  double retrieval_accuracy =
      0;                      ///< the share of views whose other view is the most similar one of the batch
  double attribute_loss = 0;  ///< of the heads that predict known attributes; 0 without them
  double alignment = 0;       ///< mean squared distance of the two views of an image; 0 is best
  double uniformity = 0;      ///< how evenly embeddings fill the sphere; lower is better
  double learning_rate = 0;
  double seconds = 0;  ///< of training so far
  double views_per_second = 0;
};

}  // namespace tandem
