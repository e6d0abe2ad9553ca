// Words as a POSIX shell reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// In single quotes: the shell changes nothing in it. Also the text of zsh and fish, where ' ends it.
std::string shell_quoted(std::string_view text);

// Quoted if the shell would change it otherwise, and joined by spaces.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace tandem
