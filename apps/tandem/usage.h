// Error texts for a command line that cannot be parsed, and advice for misspelled commands and flags.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tandem {

// One line that says what was expected, what was found and where the help is. `words` is the command line
// without the program's name.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& words);

}  // namespace tandem
