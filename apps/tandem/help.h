// Help texts of 80 columns: --help shows the common flags, --help-all every flag with its default.
#pragma once

#include <string>
#include <string_view>

#include "apps/tandem/flag_table.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tandem {

std::string help_text(const CommandRow& row, bool all);
// "Batch size (default: 16)"
std::string help_with_default(const FlagRow& flag);
// Notes at 80 columns; examples, lists and other indented lines keep their form.
std::string wrapped_notes(std::string_view notes);
// The help of the program: its commands.
std::string program_help(const CLI::App& app);

// Adds -h, --help and --help-all to the program and, because they inherit it, to commands added later.
void set_help(CLI::App& app);

}  // namespace tandem
