// How many damaged inputs a test makes: a few in every run, more when TANDEM_FUZZ_INPUTS says so.
#pragma once

#include <cstdlib>

namespace tandem {

inline int fuzz_inputs(int unless) {
  const char* const text = std::getenv("TANDEM_FUZZ_INPUTS");
  return text != nullptr ? std::atoi(text) : unless;
}

}  // namespace tandem
