// The message of the Error that a call throws. The test fails when nothing is thrown or the message has more
// than one line.
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
