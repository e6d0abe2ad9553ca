// The man page and the reference pages in Markdown, made from the table of commands and flags.
#pragma once

#include <string>
#include <vector>

#include "apps/tandem/flag_table.h"

namespace tandem {

// The page tandem(1) with all commands, or tandem-COMMAND(1) for one of them.
std::string man_page(const std::vector<CommandRow>& commands);
std::string man_page(const CommandRow& command);

// docs/reference/README.md, which lists the commands, and docs/reference/COMMAND.md.
std::string markdown_index(const std::vector<CommandRow>& commands);
std::string markdown_page(const CommandRow& command);

}  // namespace tandem
