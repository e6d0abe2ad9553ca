// The words of a sandbox. What it prevents is tested with plugins: tests/study/kernel_process_test.cpp.
#include "tandem/process/sandbox.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <thread>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Sandbox, Words_GiveTheSameOptions) {
  const SandboxOptions options{.allow_processes = true,
                               .allow_files = false,
                               .readable = {"/usr", "/a b"},
                               .writable = {"/tmp/x=y"},
                               .descriptors = {5, 9},
                               .memory_bytes = 1 << 20,
                               .file_bytes = 5,
                               .cpu_seconds = 7,
                               .max_processes = 9};
  const SandboxOptions parsed = SandboxOptions::parse(options.to_words());
  EXPECT_EQ(parsed.to_words(), options.to_words());
  EXPECT_TRUE(parsed.allow_processes);
  EXPECT_FALSE(parsed.allow_files);
  EXPECT_EQ(parsed.readable, options.readable);
  EXPECT_EQ(parsed.writable, options.writable);
  EXPECT_EQ(parsed.descriptors, options.descriptors);
  EXPECT_EQ(parsed.memory_bytes, 1 << 20);
  EXPECT_EQ(parsed.file_bytes, 5);
  EXPECT_EQ(parsed.cpu_seconds, 7);
  EXPECT_EQ(parsed.max_processes, 9);
  EXPECT_TRUE(SandboxOptions().to_words().empty());
}

TEST(Sandbox, UnknownWords_AreRefused) {
  for (const char* word : {"", "memory", "memory=", "memory=-1", "memory=x", "memory=1x", "rad=/usr", "fd=x"})
    EXPECT_EQ(error_text([&] { SandboxOptions::parse({word}); }),
              std::string("[sandbox] expected an option of the sandbox, got '") + word + "'");
}

// A filter around this process that refuses a system call, as the engine of a container may have one.
template <class F>
void with_refused_call(int call, F&& f) {
  std::thread([&] {  // a filter belongs to a thread and cannot be removed
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{.len = std::size(code), .filter = code};
    ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    f();
  })
      .join();
}

TEST(Sandbox, LandlockRefusedFromOutside_IsNamedWithTheReason) {
  with_refused_call(SYS_landlock_create_ruleset, [] {
    EXPECT_EQ(missing_protections({.allow_files = false}),
              std::vector<std::string>{
                  "files of this user can be read (the system around this process refuses Landlock: "
                  "Operation not permitted)"});
    EXPECT_TRUE(missing_protections({}).empty());
  });
}

// Without a filter nothing would be confined: it must not count as a kernel without filters.
TEST(Sandbox, FilterRefusedFromOutside_Throws) {
  with_refused_call(SYS_seccomp, [] {
    EXPECT_TRUE(missing_protections({}).empty());
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string text = error_text([] { enter_sandbox({}); });
      ::_exit(text == "[sandbox] cannot filter system calls: Operation not permitted" ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
}  // namespace tandem
