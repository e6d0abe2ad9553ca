// The flag --with of commands that load plugins into the program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/tandem/command.h"

namespace tandem {

// Compiles the files if necessary, shows the commands, and registers their operations and models.
void load_plugins(const std::vector<std::string>& files);

// Adds --with. The plugins are loaded as soon as the flag is read, before the values of other flags are
// checked: they can name what the plugins have. `on_files` gets the files, separated by commas.
void add_with_flag(CLI::App& command, const std::string& help,
                   const std::function<void(const std::string& files)>& on_files = {});

}  // namespace tandem
