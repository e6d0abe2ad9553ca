// How far a training run has got, as callbacks receive it.
#pragma once

#include <cstdint>
#include <limits>

namespace tandem {

/// How far a run has got.
struct ProgressState {
  const char* phase = nullptr;                             ///< "Validation": not an epoch of training, if set
  int epoch = 1;                                           ///< from 1
  int epochs = 1;                                          ///< of the whole run
  std::int64_t position = 0;                               ///< samples of this epoch so far
  std::int64_t total = 0;                                  ///< samples of an epoch
  double samples_per_second = 0;                           ///< 0: not known yet
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< mean of this epoch; NaN: not known yet
};

}  // namespace tandem
