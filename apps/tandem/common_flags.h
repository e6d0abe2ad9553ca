// Flags of several commands: --threads and --quiet of all, --tta of those that use a model.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace tandem {

// Adds them to the commands of `app` that do not have flags of these names.
void add_common_flags(CLI::App& app);

// --tta: sets the number of views whose probabilities are averaged.
void add_views_flag(CLI::App& command, int& views);

}  // namespace tandem
