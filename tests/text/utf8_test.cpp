#include "tandem/text/utf8.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(Utf8, DisplayWidth_CountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("X·Xᵀ"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("漢字"), 4);
  EXPECT_EQ(display_width("\U0001F600"), 2);
}

TEST(Utf8, InvalidBytes_BecomeReplacementCharacters) {
  EXPECT_EQ(one_line("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(one_line("\xC3"), "\uFFFD");
  EXPECT_EQ(one_line("\xC0\xAF"), "\uFFFD\uFFFD");                      // an overlong slash
  EXPECT_EQ(one_line("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(one_line("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond Unicode
  EXPECT_EQ(one_line("×ᵀ\U0001F600"), "×ᵀ\U0001F600");
}

TEST(Utf8, IsUtf8_FindsInvalidBytes) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\tb \u00FC \uFFFD \U0001F600"));
  for (const char* text : {"\xFF", "a\xC3", "\xC0\xAF", "\xED\xA0\x80", "a\xE2\x82 b"})
    EXPECT_FALSE(is_utf8(text));
}

TEST(Utf8, ControlCharacters_BecomeSpaces) {
  EXPECT_EQ(one_line("a\x1b[31mb\r\nc\td"), "a [31mb  c d");
  EXPECT_EQ(one_line("a\u202Eb"), "a b");
}

TEST(Utf8, WithoutControls_KeepsLinesAndColors) {
  EXPECT_EQ(without_controls("a\tb\n\x1b[1;31mred\x1b[0m\n"), "a\tb\n\x1b[1;31mred\x1b[0m\n");
  EXPECT_EQ(without_controls("\x1b[2J\x1b]0;t\a\x1b[31\r\u009b1m\u202E\x7f"), " [2J ]0;t  [31  1m  ");
  EXPECT_EQ(without_controls("a\xFF"), "a\uFFFD");
  EXPECT_EQ(without_controls("\x1b"), " ");
  EXPECT_EQ(without_controls("\x1b["), " [");
}

TEST(Utf8, Shorten_KeepsTheWidth) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdef", 4), "abc…");
  EXPECT_EQ(shorten("漢字漢字", 4), "漢…");
  EXPECT_EQ(shorten("abc", 1), "…");
  EXPECT_EQ(shorten("abc", 0), "");
}

TEST(Utf8, Wrap_BreaksAtSpaces) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("a  b\nc", 80), (std::vector<std::string>{"a b c"}));
  EXPECT_EQ(wrap("abcdefgh i", 4), (std::vector<std::string>{"abc…", "i"}));
  EXPECT_TRUE(wrap("", 10).empty());
}

}  // namespace
}  // namespace tandem
