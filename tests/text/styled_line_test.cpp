#include "tandem/text/styled_line.h"

#include <gtest/gtest.h>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr TerminalStyle no_color{.color = false};

TEST(StyledLine, Pieces_AreJoinedAndMeasured) {
  StyledLine line("name", Ink::strong);
  line.add(" → ").add("日本", Ink::good).pad(13).add("|");
  EXPECT_EQ(line.width(), 14);
  EXPECT_EQ(line.to_text(20, no_color), "name → 日本  |");
  EXPECT_EQ(line.to_text(20, {}), "\x1b[1mname\x1b[0m → \x1b[32m日本\x1b[0m  |");
  line.pad(3);
  EXPECT_EQ(line.width(), 14);
}

TEST(StyledLine, TooLong_EndsInAnEllipsis) {
  StyledLine line("abc");
  line.add("def", Ink::bad).add("ghi");
  EXPECT_EQ(line.to_text(9, no_color), "abcdefghi");
  EXPECT_EQ(line.to_text(8, no_color), "abcdefg…");
  EXPECT_EQ(line.to_text(4, no_color), "abc…");
  EXPECT_EQ(line.to_text(3, no_color), "ab…");
  EXPECT_EQ(line.to_text(1, no_color), "…");
  EXPECT_EQ(line.to_text(0, no_color), "");
  EXPECT_EQ(line.to_text(-1, no_color), "");
  EXPECT_EQ(line.to_text(5, {}), "abc\x1b[1;31md…\x1b[0m");
}

TEST(StyledLine, AnyWidth_IsNeverExceeded) {
  StyledLine line("日本語 naïve e\u0301 ");
  line.add("⠉⠑━", Ink::first).add("…", Ink::second);
  for (int width = 0; width <= line.width() + 1; ++width) {
    EXPECT_LE(display_width(line.to_text(width, no_color)), width);
    EXPECT_LE(line.to_text(width, {.color = false, .utf8 = false}).size(), static_cast<std::size_t>(width));
  }
}

TEST(StyledLine, Ascii_HasTheSameWidth) {
  const std::string text = "━━──│┤ 5 µs … ×2 日本 ⠀⠉ é";
  EXPECT_EQ(to_ascii(text), "==--|| 5 us ~ x2 ????  * ?");
  EXPECT_EQ(display_width(to_ascii(text)), display_width(text));
}

}  // namespace
}  // namespace tandem
