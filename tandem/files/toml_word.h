// Values of TOML that are one word: true, false, numbers and dates.
#pragma once

#include <string_view>

#include "tandem/files/toml.h"

namespace tandem::detail {

// Throws Error ("expected …, got 'word'", without the line) for a word that is no value.
TomlValue parse_toml_word(std::string_view word);

}  // namespace tandem::detail
