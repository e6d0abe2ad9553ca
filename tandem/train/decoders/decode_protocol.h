// What a program and its decoder processes tell each other over a socket: a header, then bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::detail {

enum class DecodeTask : std::uint32_t {
  input,    // the input of a model
  picture,  // the image as it is
  info,     // its size
  box       // decode_scaled()
};

// Followed by the transform's text and the bytes of the image file.
struct DecodeRequest {
  DecodeTask task;
  std::uint32_t transform_bytes;
  std::int64_t height, width, channels;  // of the input, or of the box
  std::int64_t max_pixels;
  std::uint64_t image_bytes;
  std::int64_t x, y;                   // of the box
  std::int64_t min_height, min_width;  // of its pixels
  std::uint32_t rgb;                   // 1: always three channels
  std::uint32_t plain_chroma;          // 1: repeat subsampled chroma
};

enum class DecodeStatus : std::uint32_t {
  done,
  image_error,
  not_confined  // of a process that ends before it reads a request
};

// Followed by the pixels, or by the text of an error.
struct DecodeReply {
  DecodeStatus status;
  std::uint32_t error_kind;              // SkipKind
  std::int64_t height, width, channels;  // of a picture, an image or the pixels of a box
  std::uint64_t bytes;
};

inline constexpr std::uint32_t max_transform_bytes = 64 << 10;
inline constexpr std::uint64_t max_error_bytes = 4 << 10;

// Whether a decoder can do what it is asked: sizes of which it can compute the bytes.
bool is_possible(const DecodeRequest& request);

// Whether this can be the answer to a possible request. A decoder may have been taken over by an image:
// nothing it says is believed unchecked, and no memory is taken for more than was asked for.
bool is_possible(const DecodeReply& reply, const DecodeRequest& request);

}  // namespace tandem::detail
