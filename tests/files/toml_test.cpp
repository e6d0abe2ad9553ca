#include "tandem/files/toml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TomlValue value_of(const std::string& text) {
  const TomlTable table = parse_toml("x = " + text, "t");
  EXPECT_EQ(table.entries.size(), 1u);
  return table.entries.at(0).value;
}

std::string error_of(const std::string& text) {
  const std::string error = error_text([&] { parse_toml(text, "run.toml"); });
  EXPECT_EQ(error.rfind("[config] run.toml:", 0), 0u) << error;
  return error.substr(std::min<std::size_t>(18, error.size()));
}

TEST(Toml, Parse_Configuration) {
  const TomlTable table = parse_toml(
      "# a run\n"
      "model = \"mlp\"   # the perceptron\r\n"
      "\n"
      "layers = [784, 200,\n"
      "  # the last\n"
      "  10,\n"
      "]\n"
      "lr=0.1\n"
      "\"batch size\"\t= 16\n"
      "resume = false",
      "run.toml");
  ASSERT_EQ(table.entries.size(), 5u);
  EXPECT_EQ(table.entries[0].key, "model");
  EXPECT_EQ(table.entries[0].value, TomlValue(std::string("mlp")));
  EXPECT_EQ(table.entries[0].line, 2);
  EXPECT_EQ(table.find("layers")->value,
            TomlValue(TomlList{std::int64_t{784}, std::int64_t{200}, std::int64_t{10}}));
  EXPECT_EQ(table.find("lr")->value, TomlValue(0.1));
  EXPECT_EQ(table.where(*table.find("lr")), "run.toml:8");
  EXPECT_EQ(table.find("batch size")->value, TomlValue(std::int64_t{16}));
  EXPECT_EQ(table.find("resume")->value, TomlValue(false));
  EXPECT_EQ(table.find("none"), nullptr);
  EXPECT_TRUE(parse_toml("", "t").entries.empty());
}

TEST(Toml, Numbers) {
  EXPECT_EQ(value_of("-17"), TomlValue(std::int64_t{-17}));
  EXPECT_EQ(value_of("+1_000"), TomlValue(std::int64_t{1000}));
  EXPECT_EQ(value_of("0xFF"), TomlValue(std::int64_t{255}));
  EXPECT_EQ(value_of("0o17"), TomlValue(std::int64_t{15}));
  EXPECT_EQ(value_of("0b101"), TomlValue(std::int64_t{5}));
  EXPECT_EQ(value_of("9223372036854775807"), TomlValue(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(value_of("1e-3"), TomlValue(0.001));
  EXPECT_EQ(value_of("-2.50"), TomlValue(-2.5));
  EXPECT_EQ(value_of("-inf"), TomlValue(-std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(std::isnan(std::get<double>(value_of("nan"))));
}

TEST(Toml, Strings) {
  EXPECT_EQ(value_of(R"("a\tb\"c\\d\u00fc\U0001F600#")"), TomlValue(std::string("a\tb\"c\\dü😀#")));
  EXPECT_EQ(value_of(R"('C:\new "x"')"), TomlValue(std::string(R"(C:\new "x")")));
  EXPECT_EQ(value_of("\"\""), TomlValue(std::string()));
  EXPECT_EQ(value_of("[]"), TomlValue(TomlList{}));
}

TEST(Toml, Write_ReadsBack) {
  TomlTable table{.name = "t"};
  const std::vector<TomlValue> values = {true,
                                         std::numeric_limits<std::int64_t>::min(),
                                         0.1,
                                         1.0,
                                         1e300,
                                         -5e-324,
                                         std::numeric_limits<double>::infinity(),
                                         std::string("a \"quoted\" \\ line\nend\x7F ü"),
                                         TomlList{1.5, std::string("x, y"), false},
                                         TomlList{}};
  for (const TomlValue& value : values)
    table.entries.push_back({"key " + std::to_string(table.entries.size()), value, 0});
  table.entries.push_back({"bare-key_1", std::int64_t{3}, 0});
  const TomlTable back = parse_toml(to_toml(table), "t");
  ASSERT_EQ(back.entries.size(), table.entries.size());
  for (std::size_t i = 0; i < table.entries.size(); ++i) {
    EXPECT_EQ(back.entries[i].key, table.entries[i].key);
    EXPECT_EQ(back.entries[i].value, table.entries[i].value) << i;
    EXPECT_EQ(back.entries[i].line, int(i) + 1);
  }
  EXPECT_EQ(to_toml({.entries = {{"layers", TomlList{std::int64_t{784}, std::int64_t{10}}}, {"lr", 1.0}}}),
            "layers = [784, 10]\nlr = 1.0\n");
}

TEST(Toml, PlainText_IsTheTextOfAFlag) {
  EXPECT_EQ(plain_text(value_of("[784, 200, 10]")), "784,200,10");
  EXPECT_EQ(plain_text(value_of("\"a b\"")), "a b");
  EXPECT_EQ(plain_text(value_of("true")), "true");
  EXPECT_EQ(plain_text(value_of("0.25")), "0.25");
}

TEST(Toml, Errors_NameTheLine) {
  EXPECT_EQ(error_of("a = 1\n\n[model]\n"),
            "3: expected key = value, got the table '[model]', which is not supported");
  EXPECT_EQ(error_of("a = 1\na = 2"), "2: 'a' is given twice");
  EXPECT_EQ(error_of("a 1"), "1: expected = after 'a', got '1'");
  EXPECT_EQ(error_of("a ="), "1: expected a value, got the end of the line");
  EXPECT_EQ(error_of("a = # none\nb = 1"), "1: expected a value, got the end of the line");
  EXPECT_EQ(error_of("a = 1 2"), "1: expected the end of the line after the value of 'a', got '2'");
  EXPECT_EQ(error_of("= 1"), "1: expected a key, got '='");
  EXPECT_EQ(error_of("a.b = 1"), "1: dotted keys such as 'a.b' are not supported");
  EXPECT_EQ(error_of("a = \"x"), "1: expected \" at the end of the string");
  EXPECT_EQ(error_of("a = \"x\ny\""), "1: expected \" at the end of the string");
  EXPECT_EQ(error_of("a = \"\"\"x\"\"\""), "1: multi-line strings are not supported");
  EXPECT_EQ(error_of(R"(a = "\q")"), "1: unknown escape \\q in a string");
  EXPECT_EQ(error_of(R"(a = "\ud800")"), "1: expected 4 hexadecimal digits of a character after \\u");
  EXPECT_EQ(error_of("a = {b = 1}"), "1: inline tables are not supported");
  EXPECT_EQ(error_of("a = [1,\n[2]]"), "2: lists inside lists are not supported");
  EXPECT_EQ(error_of("a = [1,\n2\n"), "3: expected , or ] in the list, got the end of the line");
  EXPECT_EQ(error_of("a = ["), "1: expected ] at the end of the list");
  for (const std::string word : {"mlp", "True", "1.", ".5", "1.e3", "01", "1__0", "_1", "0x", "0x-1", "1e999",
                                 "9223372036854775808", "2026-01-01", "--1", "+-1", "++1", "-"})
    EXPECT_EQ(error_of("a = " + word),
              "1: expected a string in quotes, a number, true, false or a list, got '" + word + "'");
}

}  // namespace
}  // namespace tandem
