#include "tandem/text/parse_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tandem {
namespace {

TEST(ParseNumber, Integers) {
  EXPECT_EQ(parse_number<int>("0"), 0);
  EXPECT_EQ(parse_number<int>("-17"), -17);
  EXPECT_EQ(parse_number<int>("007"), 7);
  EXPECT_EQ(parse_number<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseNumber, FloatingPoint) {
  EXPECT_EQ(parse_number<double>("0.1"), 0.1);
  EXPECT_EQ(parse_number<double>("-2.5e3"), -2500);
  EXPECT_EQ(parse_number<float>("16"), 16.0f);
  EXPECT_EQ(parse_number<double>("inf"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_number<double>("nan").value_or(0)));
}

TEST(ParseNumber, OtherBases) {
  EXPECT_EQ(parse_number<int>("ff", 16), 255);
  EXPECT_EQ(parse_number<int>("FF", 16), 255);
  EXPECT_EQ(parse_number<int>("101", 2), 5);
  EXPECT_EQ(parse_number<int>("12", 2), std::nullopt);
  EXPECT_EQ(parse_number<int>("0xff", 16), std::nullopt);
}

TEST(ParseNumber, TextThatIsNotWhollyANumber_GivesNothing) {
  for (const char* text : {"", " ", "1 ", " 1", "+1", "--1", "1,5", "1x", "x1", "-"}) {
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<int>("1.0"), std::nullopt);
  EXPECT_EQ(parse_number<int>("1e3"), std::nullopt);
  EXPECT_EQ(parse_number<int>({}), std::nullopt);
}

TEST(ParseNumber, ValueOutOfRange_GivesNothing) {
  EXPECT_EQ(parse_number<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(parse_number<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
}

TEST(ParseNumbers, EveryPartIsANumber) {
  EXPECT_EQ(parse_numbers<int>("784,200,10", ','), (std::vector<int>{784, 200, 10}));
  EXPECT_EQ(parse_numbers<int>("7", 'x'), std::vector<int>{7});
  EXPECT_EQ(parse_numbers<double>("0.5x-2", 'x'), (std::vector<double>{0.5, -2}));
  for (const char* text : {"", "x", "1x", "x1", "1xx2", "1x2x", "1 x2", "1,2"})
    EXPECT_EQ(parse_numbers<int>(text, 'x'), std::nullopt) << text;
}

}  // namespace
}  // namespace tandem
