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

TEST(FolderLock, TryLock_OfHeldFolder_NamesTheProcess) {
  const TempFolder folder;
  EXPECT_EQ(last_locked_by(folder.path()), "another process");
  {
    const std::optional<FolderLock> lock = FolderLock::try_lock(folder.path());
    ASSERT_TRUE(lock);
    EXPECT_FALSE(FolderLock::try_lock(folder.path()));
    EXPECT_EQ(last_locked_by(folder.path()), "process " + std::to_string(getpid()));
  }
  EXPECT_TRUE(FolderLock::try_lock(folder.path()));
  put_bytes(folder / ".lock", "4711 node-3\n");
  EXPECT_EQ(last_locked_by(folder.path()), "process 4711 on node-3");
}

}  // namespace
}  // namespace tandem
