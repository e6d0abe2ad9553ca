// Lines for a terminal's cells: pieces of text with an ink, measured in columns, made into text at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// `first` to `sixth` are the colors of curves.
enum class Ink {
  plain,
  strong,
  faint,
  good,
  warning,
  bad,
  first,
  second,
  third,
  fourth,
  fifth,
  sixth,
  reverse
};

struct TerminalStyle {
  bool color = true;
  bool utf8 = true;  // else other characters than ASCII are replaced by similar ones
};

class StyledLine {
 public:
  StyledLine() = default;
  explicit StyledLine(std::string_view text, Ink ink = Ink::plain) { add(text, ink); }

  // `text` must be clean (utf8.h, one_line).
  StyledLine& add(std::string_view text, Ink ink = Ink::plain);
  StyledLine& add(const StyledLine& line);
  // Spaces up to that column.
  StyledLine& pad(int column);

  int width() const { return width_; }

  // At most `width` columns; what does not fit ends in an ellipsis.
  std::string to_text(int width, const TerminalStyle& style) const;

 private:
  struct Piece {
    std::string text;
    Ink ink;
  };
  std::vector<Piece> pieces_;
  int width_ = 0;
};

// ASCII of the same width: ━ and ─ become = and -, braille dots a *, other characters a ?.
std::string to_ascii(std::string_view text);

}  // namespace tandem
