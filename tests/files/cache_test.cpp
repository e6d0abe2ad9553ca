#include "tandem/files/cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

// Sets variables for a test and puts them back.
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

TEST_F(CacheDirectory, TheFirstThatIsSet) {
  EXPECT_EQ(error_text([] { cache_directory(); }),
            "[cache] expected a home directory for the cache: set TANDEM_CACHE to a folder");
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

TEST(FolderLockTest, OneAtATime) {
  const TempFolder folder;
  const auto is_free = [&] {
    const int file = open((folder / ".lock").c_str(), O_RDWR | O_CLOEXEC);
    const bool got = flock(file, LOCK_EX | LOCK_NB) == 0;
    close(file);
    return got;
  };
  {
    const FolderLock lock(folder.path());
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
  EXPECT_EQ(error_text([&] { FolderLock(folder / "none"); }),
            "[cache] cannot write to " + (folder / "none").string() + ": No such file or directory");
}

TEST(ScratchFolderTest, GoesAwayWithAllThatIsInIt) {
  std::filesystem::path path;
  {
    const ScratchFolder scratch;
    path = scratch.path();
    std::filesystem::create_directories(path / "a" / "b");
    put_bytes(path / "a" / "f", "x");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tandem
