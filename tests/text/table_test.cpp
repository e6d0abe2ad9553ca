#include "tandem/text/table.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/text/utf8.h"
#include "tests/text/lines.h"

namespace tandem {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

TEST(Table, AlignsLeftAndRight) {
  const Table table{{{"name"}, {"n", Align::right}},
                    {{"", {{"X·Xᵀ"}, {"7"}}}, {"", {{"maximum"}, {"12345"}}}, {"", {{"none"}, {""}}}}};
  EXPECT_EQ(format_table(table),
            "name         n\n"
            "──────────────\n"
            "X·Xᵀ         7\n"
            "maximum  12345\n"
            "none\n");
}

TEST(Table, Headings_IndentTheirRows) {
  const Table table{{{"a"}, {"b"}}, {{"group", {}}, {"", {{"1"}, {"2"}}}}};
  EXPECT_EQ(format_table(table), "  a  b\n──────\ngroup\n  1  2\n");
}

TEST(Table, ColorsOnlyWhenEnabled) {
  const Table table{{{"a"}}, {{"", {{"x", Tone::bad}}}}};
  EXPECT_FALSE(contains(format_table(table), "\x1b"));
  EXPECT_TRUE(contains(format_table(table, {.color = true}), "\x1b[1;31mx\x1b[0m"));
}

TEST(Table, ShortensTheWidestLeftColumnToFit) {
  const Table table{{{"a"}, {"b"}, {"n", Align::right}},
                    {{"", {{std::string(50, 'x')}, {std::string(90, 'y')}, {"123456"}}}}};
  const std::string text = format_table(table, {.width = 60});
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), 60) << line;
  EXPECT_TRUE(contains(text, "123456")) << text;
  EXPECT_EQ(count(text, "…"), 2);
}

TEST(Table, RaggedRows_ThrowInternalError) {
  EXPECT_THROW(format_table({{{"a"}, {"b"}}, {{"", {{"1"}}}}}), InternalError);
  EXPECT_THROW(format_table({}), InternalError);
}

}  // namespace
}  // namespace tandem
