#include "tandem/device/graph_runner.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

#include "tandem/device/buffer.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

using Values = std::array<int, 5000>;

class GraphRunnerTest : public testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  StreamView stream() const { return current_stream(device()); }

  void copy(void* to, const void* from) const {
    on_backend(device(), "test", [&]<Backend B>() { copy_bytes<B>(to, from, sizeof(Values), stream()); });
  }
  Values read(const Buffer& buffer) const {
    Values values{};
    copy(values.data(), buffer.data());
    stream().synchronize();
    return values;
  }
  void write(const Buffer& buffer, int value) const {
    Values values;
    values.fill(value);
    copy(buffer.data(), values.data());
    stream().synchronize();
  }
  static Values filled(int value) {
    Values values;
    values.fill(value);
    return values;
  }
};

TEST_P(GraphRunnerTest, Run_ReadsTheCurrentInputsEveryTime) {
  const Buffer from(sizeof(Values), stream()), to(sizeof(Values), stream());
  GraphRunner runner(device());
  int calls = 0;
  for (int i = 0; i < 6; ++i) {
    write(from, i);
    runner.run([&] {
      ++calls;
      const Buffer between(sizeof(Values), stream());
      copy(between.data(), from.data());
      copy(to.data(), between.data());
    });
    EXPECT_EQ(read(to), filled(i));
  }
  EXPECT_EQ(calls, device().is_cuda() ? 3 : 6);
  EXPECT_EQ(runner.captured(), device().is_cuda());
}

// Memory allocated between two replays is not overwritten, and releasing cached memory does not break a
// replay.
TEST_P(GraphRunnerTest, Replay_DoesNotTouchOtherMemory) {
  const Buffer from(sizeof(Values), stream()), to(sizeof(Values), stream());
  GraphRunner one(device()), two(device());
  const auto work = [&] {
    const Buffer a(sizeof(Values), stream()), b(sizeof(Values), stream());
    copy(a.data(), from.data());
    copy(b.data(), a.data());
    copy(to.data(), b.data());
  };
  write(from, 1);
  for (int i = 0; i < 3; ++i) {
    one.run(work);
    two.run(work);
  }
  const Buffer held(sizeof(Values), stream()), other(sizeof(Values), stream());
  write(held, 2);
  write(other, 3);
  release_cached_memory(device());
  write(from, 4);
  one.run(work);
  EXPECT_EQ(read(to), filled(4));
  write(from, 5);
  two.run(work);
  EXPECT_EQ(read(to), filled(5));
  EXPECT_EQ(read(held), filled(2));
  EXPECT_EQ(read(other), filled(3));
}

TEST_P(GraphRunnerTest, LaterRuns_MayAllocateMore) {
  GraphRunner runner(device());
  std::size_t bytes = 1 << 20;
  for (int i = 0; i < 4; ++i) runner.run([&] { const Buffer some(bytes *= 2, current_stream(device())); });
}

TEST_P(GraphRunnerTest, CaptureFails_NextRunCapturesAgain) {
  const Buffer from(sizeof(Values), stream()), to(sizeof(Values), stream());
  GraphRunner runner(device());
  const auto good = [&] { copy(to.data(), from.data()); };
  runner.run(good);
  runner.run(good);
  EXPECT_THROW(runner.run([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_FALSE(runner.captured());
  write(from, 6);
  runner.run(good);
  EXPECT_EQ(read(to), filled(6));
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphRunnerTest, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
