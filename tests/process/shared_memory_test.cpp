#include "tandem/process/shared_memory.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "tandem/core/host_memory.h"
#include "tests/core/error_text.h"
#include "tests/core/sanitized.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

// Sanitizer runtimes do not work with a limited address space.
constexpr bool sanitized = address_sanitized || thread_sanitized;

// The Error for a megabyte under a soft limit.
std::string error_under(decltype(RLIMIT_AS) resource, rlim_t limit) {
  rlimit before{};
  getrlimit(resource, &before);
  const rlimit small{limit, before.rlim_max};
  setrlimit(resource, &small);
  const std::string text = error_text([] { SharedMemory(1000000, "the ring", "lower prefetch"); });
  setrlimit(resource, &before);
  return text;
}

TEST(SharedMemory, New_IsZeroAndSharedThroughItsDescriptor) {
  SharedMemory memory(10000, "the ring", "lower prefetch");
  ASSERT_EQ(memory.size(), 10000U);
  for (const std::byte b : memory.bytes()) ASSERT_EQ(b, std::byte{0});
  EXPECT_EQ(fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  SharedMemory other(Descriptor(dup(memory.fd())), SharedMemory::Access::read);
  std::memcpy(memory.data() + 9990, "tandem", 6);
  EXPECT_EQ(std::memcmp(other.data() + 9990, "tandem", 6), 0);
  SharedMemory moved = std::move(memory);
  EXPECT_EQ(memory.data(), nullptr);
  EXPECT_EQ(moved.size(), 10000U);
}

TEST(SharedMemory, Attach_ToAnotherKindOfFile_Throws) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const auto text = error_text([&] { SharedMemory(Descriptor(null), SharedMemory::Access::read); });
  EXPECT_EQ(text.rfind("[shared memory] expected shared memory in descriptor", 0), 0U) << text;
}

TEST(SharedMemory, LargerThanTheMachine_Throws) {
  const auto text = error_text([] { SharedMemory(std::int64_t{1} << 50, "the ring", "lower prefetch"); });
  EXPECT_EQ(text.rfind("[shared memory] the ring needs 1125899906.8 MB, but the ", 0), 0U) << text;
  EXPECT_NE(text.find(" free: lower prefetch or "), std::string::npos) << text;
}

TEST(SharedMemory, FileSizeLimit_IsNamedAndRaisesNoSignal) {
  EXPECT_EQ(error_under(RLIMIT_FSIZE, 500000),
            "[shared memory] the ring needs 1.0 MB, but files may have 0.5 MB: lower prefetch or "
            "raise the limit (ulimit -f 977)");
}

TEST(SharedMemory, AddressSpaceLimit_IsNamed) {
  if (sanitized) GTEST_SKIP();
  const auto text = error_under(RLIMIT_AS, 500000);
  EXPECT_NE(text.find("of the 0.5 MB it may: lower prefetch or raise the limit (ulimit -v "),
            std::string::npos)
      << text;
}

class Cgroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
  std::int64_t free(const std::string& membership) const {
    return cgroup_free_bytes(membership, folder_.path());
  }
  TempFolder folder_;
};

TEST_F(Cgroups, V2_UsesTheTightestGroupUpToTheRoot) {
  write("job/memory.max", "1000000");
  write("job/memory.current", "300000");
  write("job/memory.stat", "anon 200000\ninactive_file 100000\n");
  write("job/step/memory.max", "max");
  EXPECT_EQ(free("0::/job/step\n"), 800000);
  write("job/step/memory.max", "900000");
  write("job/step/memory.current", "200000");
  EXPECT_EQ(free("0::/job/step\n"), 700000);
  write("memory.max", "600000");
  EXPECT_EQ(free("0::/job/step\n"), 600000);
}

TEST_F(Cgroups, V1_IsReadToo) {
  write("memory/slurm/memory.limit_in_bytes", "5000");
  write("memory/slurm/memory.usage_in_bytes", "7000");
  EXPECT_EQ(free("9:cpu:/\n4:memory:/slurm\n0::/\n"), 0);
  write("memory/slurm/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_GT(free("4:memory:/slurm\n"), std::int64_t{1} << 60);
  EXPECT_GT(free("no membership"), std::int64_t{1} << 60);
}

}  // namespace
}  // namespace tandem
