#include "tandem/device/stream.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "tandem/device/buffer.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tests/core/error_text.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

class StreamTest : public testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
};

TEST_P(StreamTest, CurrentStream_ByDefault_IsOfTheDevice) {
  const StreamView stream = current_stream(device());
  EXPECT_EQ(stream.device, device());
  EXPECT_EQ(current_stream(device()), stream);
  stream.synchronize();
}

TEST_P(StreamTest, StreamScope_ChangesTheCurrentStreamOfItsThread) {
  const StreamView outside = current_stream(device());
  const Stream one(device()), two(device());
  {
    const StreamScope outer(one);
    EXPECT_EQ(current_stream(device()), one.view());
    {
      const StreamScope inner(two);
      EXPECT_EQ(current_stream(device()), two.view());
      StreamView elsewhere;
      std::thread([&] { elsewhere = current_stream(device()); }).join();
      EXPECT_EQ(elsewhere, outside);
    }
    EXPECT_EQ(current_stream(device()), one.view());
  }
  EXPECT_EQ(current_stream(device()), outside);
}

TEST_P(StreamTest, StreamScope_DoesNotAffectOtherDevices) {
  const Stream stream(device());
  const StreamScope scope(stream);
  EXPECT_EQ(current_stream(cpu_device).device, cpu_device);
  EXPECT_EQ(current_stream(device()).device, device());
}

TEST_P(StreamTest, Stream_Moved_KeepsItsHandle) {
  Stream one(device());
  const StreamView view = one.view();
  Stream two = std::move(one);
  EXPECT_EQ(two.view(), view);
  EXPECT_EQ(one.view().handle, nullptr);
  Stream three(device());
  three = std::move(two);
  EXPECT_EQ(three.view(), view);
}

TEST_P(StreamTest, Event_ElapsedTime_FollowsStreamOrder) {
  const StreamView stream = current_stream(device());
  Event start(device()), middle(device()), stop(device());
  std::vector<char> host(1 << 22, 1);
  const Buffer buffer(host.size(), stream);
  const auto work = [&] {
    on_backend(device(), "test",
               [&]<Backend B>() { copy_bytes<B>(buffer.data(), host.data(), host.size(), stream); });
  };
  start.record(stream);
  work();
  middle.record(stream);
  work();
  stop.record(stream);
  stop.synchronize();
  EXPECT_GT(middle.elapsed_ms_since(start), 0);
  EXPECT_GT(stop.elapsed_ms_since(middle), 0);
  EXPECT_GE(stop.elapsed_ms_since(start), middle.elapsed_ms_since(start));
}

TEST_P(StreamTest, BlockStream_OrdersAnotherStream) {
  const Stream writer(device()), reader(device());
  std::vector<int> sent(1 << 20), back(1 << 20, -1);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<int>(i);
  const std::size_t bytes = sent.size() * sizeof(int);
  const Buffer buffer(bytes, writer);
  Event written(device());
  on_backend(device(), "test", [&]<Backend B>() {
    copy_bytes<B>(buffer.data(), sent.data(), bytes, writer);
    written.record(writer);
    written.block_stream(reader);
    copy_bytes<B>(back.data(), buffer.data(), bytes, reader);
  });
  reader.view().synchronize();
  EXPECT_EQ(back, sent);
}

TEST_P(StreamTest, Event_Moved_IsUsable) {
  Event event(device());
  event.record(current_stream(device()));
  Event moved = std::move(event);
  moved.synchronize();
  EXPECT_EQ(moved.elapsed_ms_since(moved), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamTest, testing::ValuesIn(test_devices()), device_name);

TEST(Stream, UnavailableDevice_Throws) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(error_text([] { Stream stream(cuda_device()); }),
            "device cuda:0 is not available: " + why_no_cuda() + "; use cpu instead");
}

}  // namespace
}  // namespace tandem
