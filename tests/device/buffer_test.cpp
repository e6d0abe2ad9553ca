#include "tandem/device/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tests/core/error_text.h"
#include "tests/core/sanitized.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

// Under AddressSanitizer the pool caches nothing, so that errors are found.
constexpr bool caching = !address_sanitized;

class BufferTest : public testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  StreamView stream() const { return current_stream(device()); }
  PoolStatistics statistics() const { return pool_statistics(device()); }
};

TEST_P(BufferTest, OwnsMemoryOnItsDevice) {
  const Buffer buffer(1000, stream());
  ASSERT_NE(buffer.data(), nullptr);
  EXPECT_EQ(buffer.size(), 1000u);
  EXPECT_EQ(buffer.device(), device());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
  std::vector<unsigned char> sent(1000), back(1000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 7);
  on_backend(device(), "test", [&]<Backend B>() {
    copy_bytes<B>(buffer.data(), sent.data(), sent.size(), stream());
    copy_bytes<B>(back.data(), buffer.data(), back.size(), stream());
  });
  stream().synchronize();
  EXPECT_EQ(back, sent);
}

TEST_P(BufferTest, ZeroBytes_AllocateNothing) {
  const PoolStatistics before = statistics();
  const Buffer none(0, stream()), nothing;
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(nothing.data(), nullptr);
  EXPECT_EQ(statistics().system_allocations, before.system_allocations);
}

TEST_P(BufferTest, SameSizeAgain_ReusesTheBlock) {
  if (!caching) GTEST_SKIP() << "no pool under AddressSanitizer";
  for (std::size_t bytes : {1u, 1000u, 123456u, 10000000u}) {
    const std::byte* first = Buffer(bytes, stream()).data();
    const PoolStatistics before = statistics();
    const Buffer again(bytes, stream());
    EXPECT_EQ(again.data(), first);
    EXPECT_EQ(statistics().system_allocations, before.system_allocations);
  }
}

TEST_P(BufferTest, SimilarSizes_ShareBlocks) {
  if (!caching) GTEST_SKIP() << "no pool under AddressSanitizer";
  { const Buffer first(1000000, stream()); }
  const PoolStatistics before = statistics();
  const Buffer second(999000, stream());
  EXPECT_EQ(second.size(), 999000u);
  EXPECT_EQ(statistics().system_allocations, before.system_allocations);
}

TEST_P(BufferTest, TwoLiveBuffers_NeverShare) {
  const Buffer a(5000, stream()), b(5000, stream());
  EXPECT_NE(a.data(), b.data());
}

TEST_P(BufferTest, StatisticsCountUseAndCache) {
  release_cached_memory(device());
  const PoolStatistics before = statistics();
  EXPECT_EQ(before.bytes_cached, 0);
  {
    const Buffer buffer(3000000, stream());
    EXPECT_EQ(statistics().system_allocations, before.system_allocations + 1);
    EXPECT_GE(statistics().bytes_in_use, before.bytes_in_use + 3000000);
    EXPECT_LE(statistics().bytes_in_use, before.bytes_in_use + 3000000 * 9 / 8);
    EXPECT_EQ(statistics().bytes_cached, 0);
  }
  EXPECT_EQ(statistics().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(statistics().bytes_cached > 0, caching);
  release_cached_memory(device());
  EXPECT_EQ(statistics().bytes_cached, 0);
}

TEST_P(BufferTest, Move_TransfersOwnership) {
  const PoolStatistics before = statistics();
  {
    Buffer a(2000, stream());
    const std::byte* memory = a.data();
    Buffer b = std::move(a);
    EXPECT_EQ(b.data(), memory);
    EXPECT_EQ(b.size(), 2000u);
    EXPECT_EQ(a.data(), nullptr);
    EXPECT_EQ(a.size(), 0u);
    Buffer c(100, stream());
    c = std::move(b);
    EXPECT_EQ(c.data(), memory);
    EXPECT_EQ(c.size(), 2000u);
    Buffer empty;
    empty = std::move(c);
    EXPECT_EQ(empty.data(), memory);
    EXPECT_EQ(c.data(), nullptr);
  }
  EXPECT_EQ(statistics().bytes_in_use, before.bytes_in_use);
}

TEST_P(BufferTest, OutOfMemory_ErrorNamesTheSize) {
  const PoolStatistics before = statistics();
  const std::string text = error_text([&] { Buffer buffer(std::size_t{1} << 50, stream()); });
  EXPECT_EQ(text.find("[allocate] expected room for 1048576.00 GiB on " + device().to_string() + ", got "),
            0u)
      << text;
  EXPECT_NE(text.find("GiB free"), std::string::npos);
  EXPECT_EQ(statistics().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(statistics().system_allocations, before.system_allocations);
  EXPECT_NE(Buffer(1000, stream()).data(), nullptr);  // the pool is still usable
}

TEST_P(BufferTest, RetainPool_KeepsBlocksUntilTheStreamReleasesThem) {
  if (!caching) GTEST_SKIP() << "no pool under AddressSanitizer";
  release_cached_memory(device());
  const std::int64_t others = statistics().bytes_cached;
  { const Buffer buffer(1000000, stream()); }
  const std::int64_t kept = statistics().bytes_cached;
  EXPECT_GT(kept, others);
  retain_pool(stream());
  release_cached_memory(device());
  EXPECT_EQ(statistics().bytes_cached, kept);
  release_cached_memory(stream());
  EXPECT_EQ(statistics().bytes_cached, others);
  { const Buffer buffer(1000000, stream()); }  // no longer retained
  release_cached_memory(device());
  EXPECT_EQ(statistics().bytes_cached, others);
}

INSTANTIATE_TEST_SUITE_P(Devices, BufferTest, testing::ValuesIn(test_devices()), device_name);

TEST(Buffer, SecondStream_GetsDifferentBlocks_cuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  const Stream one(cuda_device()), two(cuda_device());
  const std::byte* first = Buffer(4096, one).data();
  const Buffer elsewhere(4096, two);
  EXPECT_NE(elsewhere.data(), first);
  EXPECT_EQ(Buffer(4096, one).data(), first);
}

}  // namespace
}  // namespace tandem
