// How photographs are read.
#pragma once

#include <cstdint>
#include <optional>

namespace tandem {

/// What happens to a photograph that cannot be read: in training another one replaces it, and it is reported
/// with its path; or the run ends with an Error.
enum class OnBadImage : std::uint8_t { skip, fail };

struct PhotoDecodeOptions {
  std::int64_t max_pixels = 179'000'000;  ///< larger photographs are refused
  /// Decode JPEGs at the smallest scale (1/8, 1/4, 1/2) that has at least three quarters of the requested
  /// rows and columns: faster, but the pixels differ slightly.
  bool scaled = false;
  /// Repeat subsampled chroma of JPEGs instead of interpolating it, as the JPEG decoders of GPUs do, and use
  /// such a decoder where there is one. The pixels are the same with and without one, unless a file is
  /// damaged; they differ slightly from those that interpolation gives.
  bool hardware = false;
};

struct PhotoStoreOptions {
  /// The photographs are decoded up front when they need at most this much; none: the smaller of 4 GiB and
  /// half of the free memory.
  std::optional<std::int64_t> max_decoded_bytes = {};
  OnBadImage on_bad_image = OnBadImage::skip;
  PhotoDecodeOptions decode = {};
};

}  // namespace tandem
