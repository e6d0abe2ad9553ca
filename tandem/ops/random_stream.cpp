#include "tandem/ops/random_stream.h"

#include <mutex>

#include "tandem/ops/random.h"

namespace tandem {
namespace {

// Default streams have the highest bit, so that they differ from the small numbers that callers choose.
constexpr std::uint64_t first_stream = std::uint64_t{1} << 63;

struct DefaultKeys {
  std::mutex mutex;
  detail::RandomStream next{.seed = 0, .stream = first_stream};
};

DefaultKeys& default_keys() {
  static DefaultKeys keys;
  return keys;
}

}  // namespace

void manual_seed(std::uint64_t seed) {
  DefaultKeys& keys = default_keys();
  const std::lock_guard lock(keys.mutex);
  keys.next = {.seed = seed, .stream = first_stream};
}

detail::RandomStream detail::random_stream(std::optional<std::uint64_t> seed,
                                           std::optional<std::uint64_t> stream) {
  if (seed || stream) return {.seed = seed.value_or(0), .stream = stream.value_or(0)};
  DefaultKeys& keys = default_keys();
  const std::lock_guard lock(keys.mutex);
  const RandomStream key = keys.next;
  ++keys.next.stream;
  return key;
}

}  // namespace tandem
