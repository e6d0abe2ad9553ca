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
  const std::vector<TomlValue> values = {
      true,
      std::numeric_limits<std::int64_t>::min(),
      0.1,
      1.0,
      1e300,
      -5e-324,
      std::numeric_limits<double>::infinity(),
      std::string("a \"quoted\" \\ line\nend\x7F ü"),
      TomlDate{"1979-05-27T07:32:00Z"},
      TomlList{1.5, std::string("x, y"), false},
      TomlList{},
      TomlList{TomlList{TomlList{}}, TomlTable{}, std::int64_t{1}},
      TomlTable{.entries = {{"x y", TomlTable{}}, {"z", TomlDate{"07:32:00"}}}}};
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
  EXPECT_EQ(plain_text(value_of("['a', 1979-05-27]")), "a,1979-05-27");
  EXPECT_EQ(plain_text(value_of("[['a'], {b = 'c'}]")), "[\"a\"],{b = \"c\"}");
}

TEST(Toml, Entries_HaveTheLineOfTheirKey) {
  const TomlTable table = parse_toml("x = '''\n\n'''\ny = [\n1]\nd.e = 1\n[a.b]\n\nz = 1\n[[c]]\n[a]\n", "t");
  EXPECT_EQ(table.find("x")->line, 1);
  EXPECT_EQ(table.find("y")->line, 4);
  EXPECT_EQ(table.find("d")->line, 6);
  EXPECT_EQ(table.find("c")->line, 10);
  EXPECT_EQ(table.find("a")->line, 11);
  const auto inside = std::get<TomlTable>(table.find("a")->value);
  EXPECT_EQ(inside.find("b")->line, 7);
  EXPECT_EQ(std::get<TomlTable>(inside.find("b")->value).find("z")->line, 9);
}

TEST(Toml, ByteOrderMark_IsSkipped) {
  EXPECT_EQ(parse_toml("\xEF\xBB\xBFx = 1", "t").find("x")->value, TomlValue(std::int64_t{1}));
  EXPECT_EQ(error_of("x = 1\n\xEF\xBB\xBFy = 1").substr(0, 19), "2: expected a key, ");
}

// RFC 3339 has leap seconds and the year 0; Python has neither.
TEST(Toml, Dates_FollowTheStandard) {
  EXPECT_EQ(value_of("1990-12-31T23:59:60Z"), TomlValue(TomlDate{"1990-12-31T23:59:60Z"}));
  EXPECT_EQ(value_of("0000-02-29"), TomlValue(TomlDate{"0000-02-29"}));
  EXPECT_EQ(value_of("1979-05-27 07:32:00.123456789z"),
            TomlValue(TomlDate{"1979-05-27T07:32:00.123456789Z"}));
}

TEST(Toml, Nesting_IsLimited) {
  const auto repeated = [](const std::string& text, int count) {
    std::string result;
    for (int i = 0; i < count; ++i) result += text;
    return result;
  };
  const std::string error = "1: expected at most 100 levels of tables and lists";
  EXPECT_NO_THROW(parse_toml("a = " + repeated("[", 100) + repeated("]", 100), "t"));
  EXPECT_EQ(error_of("a = " + repeated("[", 101) + repeated("]", 101)), error);
  EXPECT_EQ(error_of("a = " + repeated("[", 500'000)), error);
  EXPECT_EQ(error_of("a = " + repeated("{a = ", 200'000)), error);
  EXPECT_EQ(error_of("a = " + repeated("{a = [", 200'000)), error);
  EXPECT_EQ(error_of("a" + repeated(".a", 500'000) + " = 1"), error);
  EXPECT_EQ(error_of("[a" + repeated(".a", 500'000) + "]"), error);
  std::string arrays, key = "a";
  for (int i = 0; i < 60; ++i, key += ".a") arrays += "[[" + key + "]]\n";
  EXPECT_EQ(error_of(arrays), "51: expected at most 100 levels of tables and lists");
}

TEST(Toml, ManyKeys_AreParsed) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + " = 1\n";
  EXPECT_EQ(parse_toml(text, "t").entries.size(), 100'000u);
  EXPECT_EQ(error_of(text + "7 = 1"), "100001: expected a new key, got '7', which line 8 defines");
}

TEST(Toml, Errors_NameTheLine) {
  EXPECT_EQ(error_of("a = 1\na = 2"), "2: expected a new key, got 'a', which line 1 defines");
  EXPECT_EQ(error_of("a 1"), "1: expected = after 'a', got '1'");
  EXPECT_EQ(error_of("a ="), "1: expected a value, got the end of the line");
  EXPECT_EQ(error_of("a = # none\nb = 1"), "1: expected a value, got '#'");
  EXPECT_EQ(error_of("a = 1 2"), "1: expected the end of the line after the value of 'a', got '2'");
  EXPECT_EQ(error_of("= 1"), "1: expected a key, got '='");
  EXPECT_EQ(error_of("a = \"x"), "1: expected \" at the end of the string");
  EXPECT_EQ(error_of("a = \"x\ny\""), "1: expected \" at the end of the string");
  EXPECT_EQ(error_of("\na = \"\"\"\nx\n"),
            "4: expected \"\"\" at the end of the string that begins in line 2");
  EXPECT_EQ(error_of(R"(a = "\q")"),
            R"(1: expected one of b, t, n, f, r, ", \, u, U after \ in a string, got 'q"')");
  EXPECT_EQ(error_of(R"(a = "\ud800")"),
            "1: expected 4 hexadecimal digits of a character after \\u, got 'd800\"'");
  EXPECT_EQ(error_of("a = [1,\n2\n"), "3: expected , or ] in the list, got the end of the line");
  EXPECT_EQ(error_of("a = ["), "1: expected ] at the end of the list");
  EXPECT_EQ(error_of("a = {b = 1,\nc = 2}"), "1: expected a key, got the end of the line");
  EXPECT_EQ(error_of("a = {b = 1"), "1: expected , or } in the table, got the end of the line");
  for (const std::string word : {"mlp", "True", "1.", ".5", "01", "1__0", "0x", "0x-1", "--1"})
    EXPECT_EQ(error_of("a = " + word),
              "1: expected a string in quotes, a number, true, false, a date, a list or a table, got '" +
                  word + "'");
  EXPECT_EQ(error_of("a = 2026-02-30"),
            "1: expected a date or a time such as 1979-05-27T07:32:00Z, got '2026-02-30'");
  for (const std::string word : {"9223372036854775808", "-9223372036854775809", "0xFFFFFFFFFFFFFFFF"})
    EXPECT_EQ(error_of("a = " + word), "1: expected a whole number of at most 64 bits, got '" + word + "'");
  EXPECT_EQ(error_of("a = 1e999"), "1: expected a number that fits 64 bits, got '1e999'");
}

TEST(Toml, ErrorsOfTables_NameBothLines) {
  EXPECT_EQ(error_of("[a.b]\n\n[a.b]"), "3: expected a new table, got 'a.b', which line 1 defines");
  EXPECT_EQ(error_of("[a]\nb.c = 1\n[a.b]"), "3: expected a new table, got 'a.b', which line 2 defines");
  EXPECT_EQ(error_of("[a.b]\n[a]\nb.c = 1"), "3: expected a new table, got 'b', which line 1 defines");
  EXPECT_EQ(error_of("[a]\n[[a]]"), "2: expected a new array of tables, got 'a', which line 1 defines");
  EXPECT_EQ(error_of("a = {b = 1}\na.c = 2"),
            "2: expected 'a' to be a table to which keys can be added, got the value in line 1");
  EXPECT_EQ(error_of("\"a b\" = 1\n['a b'.c]"),
            "2: expected '\"a b\"' to be a table to which keys can be added, got the value in line 1");
  EXPECT_EQ(error_of("[a\n]"), "1: expected ] after 'a', got the end of the line");
  EXPECT_EQ(error_of("[[a]"), "1: expected ]] after 'a', got ']'");
  EXPECT_EQ(error_of("[a] b = 1"), "1: expected the end of the line after a table's name, got 'b'");
}

TEST(Toml, TextThatIsNotText_IsRefused) {
  EXPECT_EQ(error_of("a = 1\n# \xFF"), "2: expected UTF-8, got the byte 0xFF");
  EXPECT_EQ(error_of("a = 1\r\n\nb = '\x01'"), "3: expected text, got the control character U+0001");
  EXPECT_EQ(error_of(std::string("a\0b", 3)), "1: expected text, got the control character U+0000");
  EXPECT_EQ(error_of("a = 1\rb = 2"), "1: expected a line feed after the carriage return");
}

}  // namespace
}  // namespace tandem
