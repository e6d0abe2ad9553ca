// Models some of whose initial weights are computed from training images.
#pragma once

#include "tandem/ops/normalize.h"

namespace tandem {

/// A Module that is also an InitializedFromData gets some training images before the first step of
/// `tandem train`. Before fit(), or in a loop of your own, call initialize() yourself.
class InitializedFromData {
 public:
  virtual ~InitializedFromData() = default;
  /// How many images initialize() wants; fewer are fine.
  virtual std::int64_t images_for_initialization() const = 0;
  /// Computes the weights from images, u8 (n, height, width, channels) on the CPU, that the network will get
  /// normalized in this way.
  virtual void initialize(const Tensor& images, const PixelNorm& norm) = 0;
};

}  // namespace tandem
