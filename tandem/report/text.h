// Text as it stands on a terminal or in a file: UTF-8 made valid, its width in columns, shortening and
// wrapping.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Takes the first code point off `rest`; bytes that are not UTF-8 come out one by one as U+FFFD.
char32_t take_code_point(std::string_view& rest);

void append_utf8(std::string& text, char32_t code_point);

// Valid UTF-8 on one line: broken bytes become U+FFFD, control characters (line ends, escapes) a space.
std::string one_line(std::string_view text);

// Terminal columns: combining marks take none, East Asian wide characters and emoji two.
int display_width(std::string_view text);

// At most `width` columns; what is cut off is shown by an ellipsis.
std::string shorten(std::string_view text, int width);

// Lines of at most `width` columns, broken at spaces; a longer word is cut.
std::vector<std::string> wrap(std::string_view text, int width);

// one_line() with & < > " ' escaped: safe as text and inside a quoted attribute, in HTML and in SVG.
std::string escape_html(std::string_view text);

}  // namespace tandem
