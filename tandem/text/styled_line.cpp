#include "tandem/text/styled_line.h"

#include <algorithm>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

const char* code_of(Ink ink) {
  switch (ink) {
    case Ink::plain:
      return "";
    case Ink::strong:
      return "\x1b[1m";
    case Ink::faint:
      return "\x1b[2m";
    case Ink::good:
      return "\x1b[32m";
    case Ink::warning:
      return "\x1b[33m";
    case Ink::bad:
      return "\x1b[1;31m";
    case Ink::first:
      return "\x1b[36m";
    case Ink::second:
      return "\x1b[33m";
    case Ink::third:
      return "\x1b[35m";
    case Ink::fourth:
      return "\x1b[32m";
    case Ink::fifth:
      return "\x1b[94m";
    case Ink::sixth:
      return "\x1b[91m";
    case Ink::reverse:
      return "\x1b[7m";
  }
  return "";
}

char ascii_of(char32_t c) {
  if (c < 0x80) return static_cast<char>(c);
  if (c >= 0x2800 && c <= 0x28FF) return c == 0x2800 ? ' ' : '*';  // braille
  switch (c) {
    case U'─':
    case U'–':
    case U'—':
    case U'−':
      return '-';
    case U'━':
      return '=';
    case U'│':
    case U'┤':
    case U'·':
      return '|';
    case U'└':
    case U'┼':
      return '+';
    case U'…':
      return '~';
    case U'×':
      return 'x';
    case U'µ':
    case U'μ':
      return 'u';
    case U'▸':
      return '>';
    case U'\u00A0':
      return ' ';
    default:
      return '?';
  }
}

}  // namespace

StyledLine& StyledLine::add(std::string_view text, Ink ink) {
  if (text.empty()) return *this;
  width_ += display_width(text);
  if (!pieces_.empty() && pieces_.back().ink == ink)
    pieces_.back().text += text;
  else
    pieces_.push_back({std::string(text), ink});
  return *this;
}

StyledLine& StyledLine::add(const StyledLine& line) {
  for (const Piece& piece : line.pieces_) add(piece.text, piece.ink);
  return *this;
}

StyledLine& StyledLine::pad(int column) {
  return add(std::string(static_cast<std::size_t>(std::max(column - width_, 0)), ' '));
}

std::string StyledLine::to_text(int width, const TerminalStyle& style) const {
  const bool is_cut = width_ > width;
  std::string text;
  int left = is_cut ? width - 1 : width;
  for (const Piece& piece : pieces_) {
    std::string part;
    std::string_view rest = piece.text;
    while (!rest.empty() && left >= 0) {
      const std::string_view before = rest;
      take_code_point(rest);
      const std::string_view one = before.substr(0, before.size() - rest.size());
      left -= display_width(one);
      if (left >= 0) part += one;
    }
    if (left < 0) part += "…";
    if (!style.utf8) part = to_ascii(part);
    text += style.color && piece.ink != Ink::plain ? code_of(piece.ink) + part + "\x1b[0m" : part;
    if (left < 0) break;
  }
  return width > 0 ? text : std::string();
}

std::string to_ascii(std::string_view text) {
  std::string ascii;
  while (!text.empty()) {
    std::string_view rest = text;
    const char32_t c = take_code_point(rest);
    const int columns = display_width(text.substr(0, text.size() - rest.size()));
    ascii += std::string(static_cast<std::size_t>(columns), ascii_of(c));
    text = rest;
  }
  return ascii;
}

}  // namespace tandem
