// ShardNorm: what batch norms do in a batch that is cut into shards.
#pragma once

#include <cstdint>

namespace tandem {

/// What batch norms in training normalize by: the statistics of the whole batch, or of each shard alone.
enum class ShardNorm : std::uint8_t { batch, shard };

}  // namespace tandem
