// Completion scripts for bash, zsh and fish, made from the table of commands and flags.
#pragma once

#include <string>
#include <vector>

#include "apps/tandem/flag_table.h"

namespace tandem {

std::string bash_completion(const std::vector<CommandRow>& commands);
std::string zsh_completion(const std::vector<CommandRow>& commands);
std::string fish_completion(const std::vector<CommandRow>& commands);

}  // namespace tandem
