// Flags of several commands: --threads and --quiet of all, --tta and --precision of those that use a model,
// --sandbox of those that read images.
#pragma once

#include <cstdint>

#include "tandem/device/device.h"
#include "tandem/ops/matmul.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tandem {

// Adds them to the commands of `app` that do not have flags of these names.
void add_common_flags(CLI::App& app);

// --tta: sets the number of views whose probabilities are averaged.
void add_views_flag(CLI::App& command, int& views);

// --precision of predictions.
void add_precision_flag(CLI::App& command, MatmulPrecision& precision);
// Throws Error for a precision that the device does not have. `op` is the tag of the error.
void check_precision(MatmulPrecision precision, Device device, const char* op);

// --sandbox.
void add_sandbox_flag(CLI::App& command, bool& sandbox);
// Prints which protections of the processes that decode images are missing on this machine.
void note_missing_protections();
// From now on images are decoded in confined processes, and what cannot be confined is printed.
void confine_decoders(std::int64_t max_pixels, std::int64_t timeout_ms = 60'000);
// For an image in training, which is read in two steps: before its worker counts as hung.
inline constexpr std::int64_t training_decode_ms = 20'000;
// The same in a worker process, if its parent does so.
void confine_decoders_of_worker();

}  // namespace tandem
