#include "tandem/core/error.h"

#include <gtest/gtest.h>

#include <string>

#include "tandem/core/check.h"

namespace tandem {
namespace {

TEST(Check, False_ThrowsErrorWithFormattedText) {
  EXPECT_NO_THROW(check(true, "not formatted {}", 1));
  try {
    check(false, "[op] expected {}, got {}", 2, "three");
    FAIL() << "check did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[op] expected 2, got three");
  }
}

TEST(Expect, False_ThrowsInternalErrorWithLocation) {
  try {
    expect(false);
    FAIL() << "expect did not throw";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("error_test.cpp"), std::string::npos);
    EXPECT_NE(text.find("bug in Tandem"), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem
