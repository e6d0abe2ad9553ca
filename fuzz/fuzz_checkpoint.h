// The frame of a checkpoint, for the target and its mutator.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tandem/files/sha256.h"

namespace tandem {

inline constexpr std::size_t checkpoint_frame_size = 16 + 8 + 16 + 64;  // magic, version, length, digest

inline std::string as_checkpoint(std::string_view payload) {
  return fmt::format("TandemCheckpoint00000001{:016x}{}{}", payload.size(), sha256_hex(payload), payload);
}

}  // namespace tandem
