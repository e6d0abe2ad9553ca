#include "tandem/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "tests/core/error_text.h"
#include "tests/process/orphans.h"

namespace tandem {
namespace {

std::string wait_for_end(ChildProcess& child) {
  while (true) {
    if (const auto how = child.ended()) return *how;
    pollfd end{child.end_fd(), POLLIN, 0};
    poll(&end, 1, 10);
  }
}

ChildProcess shell(const std::string& script, const std::vector<int>& fds = {}) {
  return ChildProcess("/bin/sh", {"sh", "-c", script},
                      {.fds = fds, .environment = std::vector<std::string>{"ANSWER=42"}});
}

TEST(ChildProcess, ended_AfterExit_DescribesTheStatus) {
  ChildProcess fails = shell("exit 3");
  EXPECT_EQ(wait_for_end(fails), "ended with status 3");
  EXPECT_EQ(fails.pid(), -1);
  EXPECT_EQ(fails.ended(), "is gone");
  ChildProcess killed = shell("kill -9 $$");
  EXPECT_EQ(wait_for_end(killed), "was ended by signal 9");
}

TEST(ChildProcess, Start_PassesEnvironmentAndDescriptorsOnly) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const std::string fd = std::to_string(fds[1]);
  ChildProcess child = shell("echo $ANSWER$HOME >&" + fd, {fds[1]});
  close(fds[1]);
  char text[16] = {};
  EXPECT_EQ(read(fds[0], text, sizeof(text)), 3);
  EXPECT_STREQ(text, "42\n");
  close(fds[0]);
  EXPECT_EQ(wait_for_end(child), "ended with status 0");
}

TEST(ChildProcess, Destructor_KillsAndReaps) {
  pid_t pid = -1;
  {
    const ChildProcess child = shell("exec sleep 1000");
    pid = child.pid();
    EXPECT_EQ(getpgid(pid), pid);
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcess, Descendants_EndWithIt) {
  const std::string starts_another = "sleep 1000 & ", loses_another = "(sleep 1000 & ); ";
  const Orphans orphans;
  for (const std::string& other : {starts_another, loses_another}) {
    ChildProcess exits = shell(other + "exit 3");
    EXPECT_EQ(wait_for_end(exits), "ended with status 3");
    EXPECT_EQ(orphans.count(), 0) << other << "after its end was noticed";
    {
      const ChildProcess ended = shell(other + "exit 3");
      pollfd end{ended.end_fd(), POLLIN, 0};
      poll(&end, 1, -1);
    }
    EXPECT_EQ(orphans.count(), 0) << other << "after its end was not noticed";
    {
      int fds[2];
      ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
      const ChildProcess runs = shell(other + "echo >&" + std::to_string(fds[1]) + "; sleep 1000", {fds[1]});
      close(fds[1]);
      char started = 0;
      EXPECT_EQ(read(fds[0], &started, 1), 1);
      close(fds[0]);
    }
    EXPECT_EQ(orphans.count(), 0) << other << "while it ran";
  }
}

TEST(ChildProcess, Start_WithoutAProgram_ThrowsWithItsName) {
  EXPECT_EQ(error_text([] { ChildProcess("/no/such/program", {"x"}, {}); }),
            "[process] cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(error_text([] { ChildProcess("/proc/version", {"x"}, {}); }),
            "[process] cannot start /proc/version: Permission denied");
}

}  // namespace
}  // namespace tandem
