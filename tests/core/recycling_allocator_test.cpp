#include "tandem/core/recycling_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace tandem::detail {
namespace {

TEST(RecyclingAllocator, FreedBlock_IsUsedForTheNextOfItsSize) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "nothing is kept under AddressSanitizer";
#endif
  void* const first = allocate_recycled(100);
  std::memset(first, 1, 100);
  free_recycled(first, 100);
  void* const smaller = allocate_recycled(8);
  EXPECT_NE(smaller, first);
  void* const second = allocate_recycled(128);  // the same power of two
  EXPECT_EQ(second, first);
  void* const third = allocate_recycled(100);
  EXPECT_NE(third, first);
  free_recycled(smaller, 8);
  free_recycled(second, 128);
  free_recycled(third, 100);
}

TEST(RecyclingAllocator, SizesFromZeroToLarge_AreWritableAndAligned) {
  for (const std::size_t bytes : {0, 1, 7, 8, 9, 4096, 65535, 65536, 65537, 1 << 20}) {
    void* const memory = allocate_recycled(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignof(std::max_align_t), 0u);
    std::memset(memory, 255, bytes);
    free_recycled(memory, bytes);
  }
}

TEST(RecyclingAllocator, Threads_ShareItsBlocks) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 1000; ++i) {
        RecycledVector<int> values(static_cast<std::size_t>(i % 50), t);
        values.push_back(t);
        for (const int value : values) EXPECT_EQ(value, t);
        EXPECT_EQ(*std::allocate_shared<int>(RecyclingAllocator<int>(), i), i);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tandem::detail
