// Flags of several commands: --threads and --quiet of all, --tta of those that use a model, --sandbox of
// those that read images.
#pragma once

#include <cstdint>

namespace CLI {
class App;
}  // namespace CLI

namespace tandem {

// Adds them to the commands of `app` that do not have flags of these names.
void add_common_flags(CLI::App& app);

// --tta: sets the number of views whose probabilities are averaged.
void add_views_flag(CLI::App& command, int& views);

// --sandbox.
void add_sandbox_flag(CLI::App& command, bool& sandbox);
// From now on images are decoded in confined processes. Throws Error if they cannot be confined.
void confine_decoders(std::int64_t max_pixels, std::int64_t timeout_ms = 60'000);
// For an image in training, which is read in two steps: before its worker counts as hung.
inline constexpr std::int64_t training_decode_ms = 20'000;
// The same in a worker process, if its parent does so.
void confine_decoders_of_worker();

}  // namespace tandem
