// The flags that every command has: --threads and --quiet.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace tandem {

// Adds them to the commands of `app` that do not have flags of these names.
void add_common_flags(CLI::App& app);

}  // namespace tandem
