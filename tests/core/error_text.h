// The message of the Error a call throws, for tests below the rooms that have op_test.h.
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
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace tandem
