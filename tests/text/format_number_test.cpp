#include "tandem/text/format_number.h"

#include <gtest/gtest.h>

#include <limits>

namespace tandem {
namespace {

TEST(FormatNumber, Times_UnitIsChosenAfterRounding) {
  EXPECT_EQ(format_number(1.234, Unit::milliseconds), "1.23 ms");
  EXPECT_EQ(format_number(0.005, Unit::milliseconds), "5.00 µs");
  EXPECT_EQ(format_number(0.9996, Unit::milliseconds), "1.00 ms");
  EXPECT_EQ(format_number(0.9994, Unit::milliseconds), "999 µs");
  EXPECT_EQ(format_number(12345, Unit::milliseconds), "12.3 s");
  EXPECT_EQ(format_number(2.5e-5, Unit::milliseconds), "25.0 ns");
  EXPECT_EQ(format_number(0, Unit::milliseconds), "0 ms");
}

TEST(FormatNumber, ThreeSignificantDigits) {
  EXPECT_EQ(format_number(3.14159), "3.14");
  EXPECT_EQ(format_number(99.96), "100");
  EXPECT_EQ(format_number(60312), "60300");
  EXPECT_EQ(format_number(0.00123), "0.00123");
  EXPECT_EQ(format_number(3.1e-7), "3.1e-07");
  EXPECT_EQ(format_number(-12.34), "-12.3");
  EXPECT_EQ(format_number(-std::numeric_limits<double>::max()), "-1.8e+308");
}

TEST(FormatNumber, RatiosAndShares) {
  EXPECT_EQ(format_number(12.34, Unit::ratio), "×12.3");
  EXPECT_EQ(format_number(0.873, Unit::share), "87.3 %");
  EXPECT_EQ(format_number(1, Unit::share), "100.0 %");
  EXPECT_EQ(format_number(20, Unit::count), "20");
  EXPECT_EQ(format_number(60000, Unit::count), "60,000");
  EXPECT_EQ(format_number(0.0001, Unit::share), "<0.1 %");
  EXPECT_EQ(format_number(0, Unit::share), "0.0 %");
}

TEST(FormatNumber, NotFinite_IsADash) {
  for (const Unit unit : {Unit::none, Unit::milliseconds, Unit::ratio, Unit::share}) {
    EXPECT_EQ(format_number(std::numeric_limits<double>::quiet_NaN(), unit), "–");
    EXPECT_EQ(format_number(std::numeric_limits<double>::infinity(), unit), "–");
    EXPECT_EQ(format_tick(std::numeric_limits<double>::infinity(), unit), "–");
  }
  EXPECT_EQ(format_ms_range(1, std::numeric_limits<double>::infinity()), "–");
}

TEST(FormatNumber, Range_HasTheUnitOfItsLargerEnd) {
  EXPECT_EQ(format_ms_range(0.41, 0.452), "410–452 µs");
  EXPECT_EQ(format_ms_range(0.95, 1.2), "950 µs–1.20 ms");
}

TEST(FormatNumber, Ticks_HaveNoNeedlessDigits) {
  EXPECT_EQ(format_tick(0.02, Unit::milliseconds), "20 µs");
  EXPECT_EQ(format_tick(0, Unit::milliseconds), "0");
  EXPECT_EQ(format_tick(10, Unit::ratio), "×10");
  EXPECT_EQ(format_tick(0.5, Unit::share), "50 %");
  EXPECT_EQ(format_tick(16000), "16k");
  EXPECT_EQ(format_tick(1e9), "1G");
  EXPECT_EQ(format_tick(0.25), "0.25");
}

TEST(FormatNumber, Counts_HaveThousandsSeparators) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(60000), "60,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-100), "-100");
  EXPECT_EQ(format_count(-123456), "-123,456");
}

}  // namespace
}  // namespace tandem
