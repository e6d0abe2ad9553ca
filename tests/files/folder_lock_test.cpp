#include "tandem/files/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

TEST(FolderLock, Held_ExcludesOthers) {
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
            "[folder_lock] cannot write to " + (folder / "none").string() + ": No such file or directory");
}

}  // namespace
}  // namespace tandem
