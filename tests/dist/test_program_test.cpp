#include "tests/dist/test_program.h"

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "rank") return tandem::run_rank(words);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
