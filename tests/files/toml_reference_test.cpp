// Documents that Python's tomllib reads or refuses (tests/golden/make_toml.py), and random changes of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/files/toml.h"
#include "tests/paths.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json stored_cases() {
  std::ifstream file(std::string(source_folder) + "/tests/golden/toml.json");
  return Json::parse(file);
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

// The encoding of make_toml.py.
Json encoded(const TomlValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, TomlTable>) {
          Json table = Json::object();
          for (const TomlEntry& entry : held.entries) table[entry.key] = encoded(entry.value);
          return {{"table", table}};
        } else if constexpr (std::is_same_v<T, TomlList>) {
          Json list = Json::array();
          for (const TomlValue& part : held) list.push_back(encoded(part));
          return list;
        } else if constexpr (std::is_same_v<T, double>) {
          const auto bits = std::bit_cast<std::uint64_t>(held);
          return {{"float", std::isnan(held) ? "nan" : fmt::format("{:016x}", bits)}};
        } else if constexpr (std::is_same_v<T, TomlDate>) {
          return {{"date", held.text}};
        } else {
          return held;
        }
      },
      value);
}

TEST(TomlReference, ValidDocuments_GiveTheValuesOfTomllib) {
  const Json cases = stored_cases().at("valid");
  EXPECT_GE(cases.size(), 50u);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    TomlTable table;
    ASSERT_NO_THROW(table = parse_toml(one.at("text").get<std::string>(), "t"));
    EXPECT_EQ(encoded(table).dump(), one.at("expected").dump());
    EXPECT_EQ(encoded(parse_toml(to_toml(table), "t")).dump(), one.at("expected").dump()) << to_toml(table);
  }
}

TEST(TomlReference, InvalidDocuments_AreRefused) {
  const Json cases = stored_cases().at("invalid");
  EXPECT_GE(cases.size(), 300u);
  for (const Json& one : cases) {
    const std::string text =
        one.contains("text") ? one.at("text").get<std::string>() : from_hex(one.at("hex").get<std::string>());
    try {
      parse_toml(text, "run.toml");
      ADD_FAILURE() << one.at("name") << " is accepted: " << one.dump();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("[config] run.toml:", 0), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find(": expected "), std::string::npos) << error.what();
    }
  }
}

// Whatever the bytes are, the parser ends with an Error or with a table that can be written and read back.
TEST(TomlReference, ChangedDocuments_AreReadOrRefused) {
  std::vector<std::string> documents;
  const Json cases = stored_cases();
  for (const Json& one : cases.at("valid")) documents.push_back(one.at("text").get<std::string>());
  std::mt19937 random(1);
  const auto below = [&](std::size_t bound) { return random() % std::max<std::size_t>(bound, 1); };
  const std::string characters = "[]{}=.,\"'\\#\n\r\t -+_0123456789abexuUTZ:\xC3\xBC\xFF";
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = documents[below(documents.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      const std::size_t at = below(text.size() + 1);
      switch (below(4)) {
        case 0:
          text.insert(at, 1, characters[below(characters.size())]);
          break;
        case 1:
          text.erase(at, 1 + below(3));
          break;
        case 2:
          if (at < text.size()) text[at] = characters[below(characters.size())];
          break;
        default: {
          const std::string& other = documents[below(documents.size())];
          text.insert(at, other.substr(below(other.size() + 1), below(30)));
        }
      }
    }
    try {
      const std::string written = to_toml(parse_toml(text, "t"));
      ASSERT_EQ(to_toml(parse_toml(written, "t")), written) << text;
      ++read;
    } catch (const Error& error) {
      ASSERT_EQ(std::string(error.what()).rfind("[config] t:", 0), 0u) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tandem
