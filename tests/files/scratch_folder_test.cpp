#include "tandem/files/scratch_folder.h"

#include <gtest/gtest.h>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

TEST(ScratchFolder, IsRemovedWithItsContents) {
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
