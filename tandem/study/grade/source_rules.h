// Rules about the text of a source file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class SourceLanguage { c, python };

// The code without comments and the contents of strings, so that only identifiers that are used remain.
std::string without_comments(std::string_view source, SourceLanguage language);

// The first of the identifiers that the code uses; empty when it uses none of them.
std::string used_identifier(std::string_view source, SourceLanguage language,
                            const std::vector<std::string>& identifiers);

// Whether the code has one of the fragments; spaces and line ends do not count.
bool has_fragment(std::string_view source, SourceLanguage language,
                  const std::vector<std::string>& fragments);

}  // namespace tandem
