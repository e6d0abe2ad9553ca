// UTF-8 text for terminals and reports: validation, display width, shortening and wrapping.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Removes the first code point from `rest` and returns it. Every byte that is not valid UTF-8 gives U+FFFD.
char32_t take_code_point(std::string_view& rest);

bool is_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t code_point);

// Valid UTF-8 on one line: invalid bytes become U+FFFD, control characters (line ends, escapes) become
// spaces.
std::string one_line(std::string_view text);

// The same for text of several lines that goes to a terminal: line ends, tabs and codes for colors stay.
std::string without_controls(std::string_view text);

// Terminal columns: 0 for combining marks, 2 for East Asian wide characters and emoji, else 1.
int display_width(std::string_view text);

// At most `width` columns; text that does not fit ends in an ellipsis.
std::string shorten(std::string_view text, int width);

// Lines of at most `width` columns, broken at spaces; a word longer than a line is shortened.
std::vector<std::string> wrap(std::string_view text, int width);

}  // namespace tandem
