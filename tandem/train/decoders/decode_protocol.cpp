#include "tandem/train/decoders/decode_protocol.h"

#include "tandem/image/decode_error.h"

namespace tandem::detail {
namespace {

constexpr std::int64_t max_side = 1 << 20;

bool is_within(std::int64_t value, std::int64_t min, std::int64_t max) {
  return value >= min && value <= max;
}

}  // namespace

bool is_possible(const DecodeRequest& request) {
  constexpr std::int64_t max_pixels = std::int64_t{1} << 48, max_box = std::int64_t{1} << 31;
  if (request.transform_bytes > max_transform_bytes || !is_within(request.max_pixels, 0, max_pixels))
    return false;
  switch (request.task) {
    case DecodeTask::input:
      return is_within(request.height, 1, max_side) && is_within(request.width, 1, max_side) &&
             is_within(request.channels, 1, 4);
    case DecodeTask::picture:
    case DecodeTask::info:
      return true;
    case DecodeTask::box:
      return is_within(request.height, 1, max_box) && is_within(request.width, 1, max_box) &&
             is_within(request.x, 0, max_box) && is_within(request.y, 0, max_box) &&
             is_within(request.min_height, 0, max_box) && is_within(request.min_width, 0, max_box);
  }
  return false;
}

bool is_possible(const DecodeReply& reply, const DecodeRequest& request) {
  if (reply.status != DecodeStatus::done)
    return reply.status <= DecodeStatus::not_confined && reply.bytes <= max_error_bytes &&
           reply.error_kind <= static_cast<std::uint32_t>(SkipKind::unreadable);
  if (request.task == DecodeTask::input)
    return reply.bytes == static_cast<std::uint64_t>(request.height * request.width * request.channels);
  const bool is_image = (reply.channels == 3 || (reply.channels == 1 && request.rgb == 0)) &&
                        reply.height > 0 && reply.width > 0 &&
                        reply.height <= request.max_pixels / reply.width;
  if (!is_image) return false;
  if (request.task == DecodeTask::info) return reply.bytes == 0;
  if (request.task == DecodeTask::box && (reply.height > request.height || reply.width > request.width))
    return false;
  return reply.bytes == static_cast<std::uint64_t>(reply.height * reply.width * reply.channels);
}

}  // namespace tandem::detail
