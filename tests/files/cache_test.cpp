#include "tandem/files/cache.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

// Clears the variables for a test and restores them.
class CacheDirectory : public testing::Test {
 protected:
  void SetUp() override {
    for (auto& [name, value] : saved_)
      if (const char* found = std::getenv(name)) value = found;
    for (const auto& [name, value] : saved_) unsetenv(name);
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
  }
  std::vector<std::pair<const char*, std::string>> saved_{
      {"TANDEM_CACHE", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}};
};

TEST_F(CacheDirectory, UsesTheFirstVariableThatIsSet) {
  EXPECT_EQ(error_text([] { cache_directory(); }),
            "[cache] expected a cache folder in TANDEM_CACHE, XDG_CACHE_HOME or HOME, got none");
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(cache_directory(), "/home/me/.cache/tandem");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_directory(), "/home/me/.cache/tandem");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(cache_directory(), "/cache/tandem");
  setenv("TANDEM_CACHE", "", 1);
  EXPECT_EQ(cache_directory(), "/cache/tandem");
  setenv("TANDEM_CACHE", "/own", 1);
  EXPECT_EQ(cache_directory(), "/own");
}

}  // namespace
}  // namespace tandem
