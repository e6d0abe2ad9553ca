// The message of the Error a call throws; the test fails when it throws none, or one of several lines.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tandem/core/error.h"

namespace tandem {

template <class F>
std::string error_text(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace tandem
