#include "tandem/files/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>

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

TEST(FolderLock, Holder_IsAliveIfItStartedBefore) {
  const TempFolder folder;
  EXPECT_FALSE(last_lock_holder(folder.path()));
  const FolderLock lock(folder.path());
  LockHolder holder = last_lock_holder(folder.path()).value();
  EXPECT_EQ(holder.process, getpid());
  EXPECT_TRUE(holder.is_here);
  EXPECT_TRUE(is_alive(holder, folder.path()));
  // The number of a process that ended was given to this one.
  std::filesystem::last_write_time(
      folder / ".lock", std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 365 * 10));
  EXPECT_FALSE(is_alive(holder, folder.path()));
  holder.process = 0x7FFFFFFE;
  EXPECT_FALSE(is_alive(holder, folder.path()));
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
