#include "tandem/serve/decode_protocol.h"

#include "tandem/image/decode_error.h"

namespace tandem::detail {
namespace {

constexpr std::int64_t max_side = 1 << 20;

bool is_within(std::int64_t value, std::int64_t min, std::int64_t max) {
  return value >= min && value <= max;
}

}  // namespace

bool is_possible(const DecodeRequest& request) {
  if (request.transform_bytes > max_transform_bytes || request.max_pixels < 0) return false;
  if (request.task == DecodeTask::picture) return true;
  return request.task == DecodeTask::input && is_within(request.height, 1, max_side) &&
         is_within(request.width, 1, max_side) && is_within(request.channels, 1, 4);
}

bool is_possible(const DecodeReply& reply, const DecodeRequest& request) {
  if (reply.is_error != 0)
    return reply.bytes <= max_error_bytes &&
           reply.error_kind <= static_cast<std::uint32_t>(SkipKind::unreadable);
  if (request.task == DecodeTask::input)
    return reply.bytes == static_cast<std::uint64_t>(request.height * request.width * request.channels);
  return (reply.channels == 1 || reply.channels == 3) && reply.height > 0 && reply.width > 0 &&
         reply.height <= request.max_pixels / reply.width &&
         reply.bytes == static_cast<std::uint64_t>(reply.height * reply.width * reply.channels);
}

}  // namespace tandem::detail
