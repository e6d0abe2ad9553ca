// The words of a sandbox. What it prevents is tested with plugins: tests/study/kernel_process_test.cpp.
#include "tandem/process/sandbox.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tandem
