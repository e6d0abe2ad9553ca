#include "tandem/study/grade/source_rules.h"

#include <algorithm>
#include <cctype>

namespace tandem {
namespace {

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The end of a string that begins at `at`; Python also has strings in three quotes.
std::size_t string_end(std::string_view text, std::size_t at, SourceLanguage language) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = language == SourceLanguage::python && text.substr(at, 3) == three;
  if (is_long) {
    const std::size_t end = text.find(three, at + 3);
    return end == std::string_view::npos ? text.size() : end + 3;
  }
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == quote || text[i] == '\n')
      return i + 1;
  }
  return text.size();
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  return text;
}

}  // namespace

std::string without_comments(std::string_view source, SourceLanguage language) {
  std::string code;
  for (std::size_t i = 0; i < source.size();) {
    const std::string_view rest = source.substr(i);
    const bool line = language == SourceLanguage::python ? rest[0] == '#' : rest.starts_with("//");
    if (line) {
      i = std::min(source.find('\n', i), source.size());
    } else if (language == SourceLanguage::c && rest.starts_with("/*")) {
      const std::size_t end = source.find("*/", i + 2);
      i = end == std::string_view::npos ? source.size() : end + 2;
      code += ' ';
    } else if (rest[0] == '"' || rest[0] == '\'') {
      // Between digits it separates groups of them: 1'000.
      const bool separator =
          rest[0] == '\'' && i > 0 && is_letter(source[i - 1]) && language == SourceLanguage::c;
      i = separator ? i + 1 : string_end(source, i, language);
      if (!separator) code += " ";
    } else {
      code += source[i++];
    }
  }
  return code;
}

std::string used_identifier(std::string_view source, SourceLanguage language,
                            const std::vector<std::string>& identifiers) {
  if (identifiers.empty()) return {};
  const std::string code = without_comments(source, language);
  for (const std::string& identifier : identifiers)
    for (std::size_t at = code.find(identifier); at != std::string::npos;
         at = code.find(identifier, at + 1)) {
      const std::size_t end = at + identifier.size();
      if ((at == 0 || !is_letter(code[at - 1])) && (end == code.size() || !is_letter(code[end])))
        return identifier;
    }
  return {};
}

bool has_fragment(std::string_view source, SourceLanguage language,
                  const std::vector<std::string>& fragments) {
  const std::string code = without_spaces(without_comments(source, language));
  return std::ranges::any_of(fragments, [&](const std::string& fragment) {
    return code.find(without_spaces(fragment)) != std::string::npos;
  });
}

}  // namespace tandem
