#include "tandem/files/unpickle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

using namespace std::string_literals;
using Kind = PickleKind;

std::string error_of(const std::string& bytes) {
  const std::string text = error_text([&] { parse_pickle(bytes, "p"); });
  EXPECT_EQ(text.rfind("[pickle] p: ", 0), 0u) << text;
  return text.substr(std::min<std::size_t>(text.size(), 12));
}

// The root value of a pickle.
PickleValue value_of(const std::string& bytes) {
  const Pickle pickle = parse_pickle(bytes, "p");
  return pickle.at(pickle.root);
}

TEST(Unpickle, Numbers) {
  EXPECT_EQ(value_of("N.").kind, Kind::none);
  EXPECT_EQ(value_of("I01\n.").kind, Kind::boolean);
  EXPECT_EQ(value_of("\x88.").integer, 1);
  EXPECT_EQ(value_of("\x89.").integer, 0);
  EXPECT_EQ(value_of("I-42\n.").integer, -42);
  EXPECT_EQ(value_of("L77L\n.").integer, 77);
  EXPECT_EQ(value_of("K\xFF.").integer, 255);
  EXPECT_EQ(value_of("M\x01\x02.").integer, 513);
  EXPECT_EQ(value_of("J\xFE\xFF\xFF\xFF.").integer, -2);
  EXPECT_EQ(value_of("\x8a\x01\xFF.").integer, -1);
  EXPECT_EQ(value_of("\x8a\x00."s).integer, 0);
  EXPECT_EQ(value_of("\x8a\x03\x00\x00\x80."s).integer, -(1 << 23));
  EXPECT_EQ(value_of("\x8a\x09xxxxxxxxx.").kind, Kind::big_integer);
  EXPECT_EQ(value_of("L119547037146038801333356L\n.").kind, Kind::big_integer);
  EXPECT_EQ(value_of("F-1.5e3\n.").number, -1500);
  EXPECT_EQ(value_of("G\x3F\xF8\0\0\0\0\0\0."s).number, 1.5);
}

TEST(Unpickle, Texts) {
  const auto text_of = [](const std::string& bytes) {
    const Pickle pickle = parse_pickle(bytes, "p");
    return std::string(pickle.at(pickle.root).text);
  };
  EXPECT_EQ(text_of("U\x02hi."), "hi");
  EXPECT_EQ(text_of("X\x02\0\0\0\xC3\xBC."s), "ü");
  EXPECT_EQ(text_of("\x8c\x01x."), "x");
  EXPECT_EQ(text_of("S'a\\n\\x41\\'\\\\'\n."), "a\nA'\\");
  EXPECT_EQ(text_of("V\\u00fc\xFC\\n\n."), "üü\\n");
  EXPECT_EQ(text_of("C\x01\xFF."), "\xFF");
}

TEST(Unpickle, ContainersAndMemo) {
  const Pickle pickle = parse_pickle(
      "\x80\x02}q\x00(U\x01"
      "a]q\x01(K\x01K\x02"
      "eU\x01"
      "bh\x01u."s,
      "p");
  const PickleValue& dict = pickle.at(pickle.root);
  ASSERT_EQ(dict.kind, Kind::dict);
  ASSERT_EQ(dict.items.size(), 4u);
  EXPECT_EQ(dict.items[1], dict.items[3]);  // the same list
  const PickleValue& list = pickle.at(dict.items[1]);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(pickle.at(list.items[1]).integer, 2);
  EXPECT_EQ(value_of("(K\x01K\x02t.").items.size(), 2u);
  EXPECT_EQ(value_of("NNN\x87.").items.size(), 3u);
  EXPECT_EQ(value_of("K\x05(NN1.").integer, 5);
  EXPECT_EQ(value_of("K\x05(0.").integer, 5);
}

TEST(Unpickle, ListThatContainsItself_IsParsed) {
  const Pickle pickle = parse_pickle(
      "]q\x01h\x01"
      "a.",
      "p");
  EXPECT_EQ(pickle.at(pickle.root).items, std::vector<std::uint32_t>{pickle.root});
}

TEST(Unpickle, GlobalsAndCalls_AreRecorded) {
  const Pickle pickle = parse_pickle(
      "cos\nsystem\nq\x01"
      "0(ctorch\nFloatStorage\nh\x01U\x01x\x85Rt.",
      "p");
  ASSERT_EQ(pickle.names.size(), 2u);
  EXPECT_EQ(pickle.names[0].name, "os.system");
  EXPECT_TRUE(pickle.names[0].called);
  EXPECT_EQ(pickle.names[1].name, "torch.FloatStorage");
  EXPECT_FALSE(pickle.names[1].called);
}

TEST(Unpickle, Size_IsThatOfTheFirstPickle) {
  EXPECT_EQ(parse_pickle("K\x01.K\x02.", "p").size, 3u);
}

TEST(Unpickle, InvalidPickles_Throw) {
  const std::string truncated = "the pickle is truncated, or longer than 67108864 bytes";
  EXPECT_EQ(error_of(""), truncated);
  EXPECT_EQ(error_of("N"), truncated);
  EXPECT_EQ(error_of("X\xFF\xFF\xFF\xFFxx."), truncated);
  EXPECT_EQ(error_of("\x8e\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFxx."), truncated);
  EXPECT_EQ(error_of("I12"), "the pickle is truncated");
  const auto unexpected = [](int opcode, int at) {
    return fmt::format("not a pickle, or damaged: unexpected opcode 0x{:02x} at byte {}", opcode, at);
  };
  EXPECT_EQ(error_of("."), unexpected('.', 0));
  EXPECT_EQ(error_of("NN."), unexpected('.', 2));
  EXPECT_EQ(error_of("(N."), unexpected('.', 2));
  EXPECT_EQ(error_of("t."), unexpected('t', 0));
  EXPECT_EQ(error_of("N(\x85."), unexpected(0x85, 2));  // must not pop beyond the mark
  EXPECT_EQ(error_of("h\x07."), unexpected('h', 0));
  EXPECT_EQ(error_of("NNa."), unexpected('a', 2));
  EXPECT_EQ(error_of("}(Nu."), unexpected('u', 3));
  EXPECT_EQ(error_of("N)R."), unexpected('R', 2));
  EXPECT_EQ(error_of("Ix\n."), unexpected('I', 0));
  EXPECT_EQ(error_of("S'a\n."), unexpected('S', 0));
  EXPECT_EQ(error_of("S'\\q'\n."), unexpected('S', 0));
  EXPECT_EQ(error_of("\x80\x09N."), unexpected(0x80, 0));
  EXPECT_EQ(error_of("\x97N."), unexpected(0x97, 0));
  EXPECT_EQ(error_of("\xFF"), unexpected(0xFF, 0));
}

TEST(Unpickle, Limits_AreEnforced) {
  EXPECT_EQ(error_of(std::string(5'000'000, ']')), "more than 4000000 values");
  EXPECT_EQ(error_of("c" + std::string(500, 'm') + "\n" + std::string(100, 'n') + "\n."),
            "a name of 601 bytes, the limit is 512");
  // Deep nesting is fine: the parser does not recurse.
  std::string deep(1'000'000, '(');
  deep += "N" + std::string(1'000'000, 't') + ".";
  EXPECT_EQ(parse_pickle(deep, "p").values.size(), 1'000'001u);
  // A large memo key does not allocate memory.
  EXPECT_EQ(value_of("K\x01r\xFF\xFF\xFF\xFF"
                     "0j\xFF\xFF\xFF\xFF.")
                .integer,
            1);
}

}  // namespace
}  // namespace tandem
