// Messages between two ranks that take turns in one thread.
#include "tandem/dist/local_transport.h"

#include <fcntl.h>

#include <random>
#include <thread>

#include "tandem/dist/transport.h"
#include "tandem/process/child_process.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count) {
  std::mt19937 generator(static_cast<unsigned>(count));
  Bytes bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(generator());
  return bytes;
}

class LocalTransportTest : public testing::Test {
 protected:
  // Both sides move data until both are done.
  static void finish(Request& a, Request& b) {
    for (int i = 0; i < 1000; ++i) {
      const bool first = a.test();
      if (b.test() && first) return;
    }
    ADD_FAILURE() << "the messages do not end";
  }

  std::shared_ptr<LocalSegment> segment_ = std::make_shared<LocalSegment>(2);
  // A mapping of its own, as another process has.
  std::shared_ptr<LocalSegment> other_ = std::make_shared<LocalSegment>(Descriptor(dup(segment_->fd())));
  Transport zero_{LocalTransport::open(segment_, 0)}, one_{LocalTransport::open(other_, 1)};
};

TEST_F(LocalTransportTest, Messages_OfAnySize_Arrive) {
  const auto ring = static_cast<std::size_t>(segment_->ring_capacity());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{16},
                                 std::size_t{1000}, ring - 16, ring - 1, ring, ring + 1, 5 * ring + 3}) {
    const Bytes sent = random_bytes(size);
    Bytes early(size), late(size);
    Request receive = one_.receive(0, 5, early);
    Request send = zero_.send(1, 5, sent);
    finish(send, receive);
    EXPECT_EQ(early, sent) << size;
    send = zero_.send(1, 6, sent);  // before it is asked for
    receive = one_.receive(0, 6, late);
    finish(send, receive);
    EXPECT_EQ(late, sent) << size;
  }
}

TEST_F(LocalTransportTest, Tags_AreMatchedInAnyOrder_AndEqualTagsInTheirs) {
  std::vector<Bytes> sent{random_bytes(100), random_bytes(200000), random_bytes(300), random_bytes(400000)};
  std::vector<Bytes> received;
  for (const Bytes& bytes : sent) received.emplace_back(bytes.size());
  std::vector<Request> requests;
  const int tags[] = {1, 2, 1, 3};
  for (std::size_t i = 0; i < 4; ++i) requests.push_back(zero_.send(1, tags[i], sent[i]));
  requests[0].test();
  Bytes nothing(1);
  Request other = one_.receive(0, 9, nothing);
  EXPECT_FALSE(other.test());  // what is not asked for is kept
  for (const std::size_t i : {3U, 0U, 1U, 2U}) requests.push_back(one_.receive(0, tags[i], received[i]));
  for (int turn = 0; turn < 100; ++turn) std::erase_if(requests, [](Request& one) { return one.test(); });
  EXPECT_TRUE(requests.empty());
  EXPECT_EQ(received, sent);
}

TEST_F(LocalTransportTest, Signal_IsRaisedByMessagesAndRoom) {
  const std::uint32_t before = one_.signal();
  const Bytes sent = random_bytes(1000000);
  Request send = zero_.send(1, 0, sent);
  EXPECT_NE(one_.signal(), before);
  one_.wait(before, std::int64_t{3600} * 1'000'000'000);  // returns at once
  const std::uint32_t full = zero_.signal();
  Bytes received(sent.size());
  Request receive = one_.receive(0, 0, received);
  EXPECT_FALSE(receive.test());
  EXPECT_NE(zero_.signal(), full);
  finish(send, receive);
  const std::uint32_t seen = one_.signal();
  one_.wake();
  one_.wait(seen, std::int64_t{3600} * 1'000'000'000);
}

TEST_F(LocalTransportTest, AnotherSize_Throws) {
  const Bytes sent = random_bytes(24);
  Bytes received(16);
  Request receive = one_.receive(0, 0, received);
  Request send = zero_.send(1, 0, sent);
  EXPECT_EQ(error_text([&] { receive.test(); }),
            "[transport] expected a message of 16 bytes from rank 0, got 24");
  send = zero_.send(1, 1, sent);
  Bytes one_byte(1);
  EXPECT_FALSE(one_.receive(0, 9, one_byte).test());  // reads the message early
  receive = one_.receive(0, 1, received);
  EXPECT_EQ(error_text([&] { receive.test(); }),
            "[transport] expected a message of 16 bytes from rank 0, got 24");
}

TEST_F(LocalTransportTest, CanceledReceive_LeavesTheNextMessageAlone) {
  const Bytes sent = random_bytes(1000000), next = random_bytes(1000);
  Bytes received(next.size());
  Request send = zero_.send(1, 0, sent);
  {
    Bytes gone(sent.size());
    const Request canceled = one_.receive(0, 0, gone);
    Request other = one_.receive(0, 1, received);
    other.test();
  }
  Request send_next = zero_.send(1, 2, next);
  Request receive = one_.receive(0, 2, received);
  finish(send_next, receive);
  EXPECT_EQ(received, next);
}

TEST_F(LocalTransportTest, CanceledSend_BlocksWhatFollowsIfItWasCutOff) {
  const Bytes large = random_bytes(1000000), small = random_bytes(10);
  zero_.send(1, 0, large);  // given up at once, halfway
  EXPECT_EQ(error_text([&] { zero_.send(1, 1, small); }),
            "[transport] nothing can be sent after a message that was given up");
}

TEST(LocalTransport, Attach_TwiceOrAsAnUnknownRank_Throws) {
  const auto segment = std::make_shared<LocalSegment>(2);
  const LocalTransport first(segment, 1);
  EXPECT_EQ(error_text([&] { LocalTransport(segment, 1); }), "[group] there are two ranks 1");
  EXPECT_EQ(error_text([&] { LocalTransport(segment, 2); }), "[group] expected a rank below 2, got 2");
}

TEST(LocalTransport, PeerState_TellsOfThoseWhoLeft) {
  const auto segment = std::make_shared<LocalSegment>(2);
  LocalTransport zero(segment, 0);
  EXPECT_EQ(zero.peer_state(1), TANDEM_PEER_RUNS);  // has not come yet
  {
    const LocalTransport one(segment, 1);
    EXPECT_EQ(zero.peer_state(1), TANDEM_PEER_RUNS);
  }
  EXPECT_EQ(zero.peer_state(1), TANDEM_PEER_LEFT);
}

TEST(LocalTransport, PeerState_OfAProcessThatEndedBeforeItAttached_IsEnded) {
  const auto segment = std::make_shared<LocalSegment>(3);
  LocalTransport zero(segment, 0);
  ChildProcess runs("sleep", {"sleep", "1000"}, {.search_path = true});
  ChildProcess ends("true", {"true"}, {.search_path = true});
  segment->set_process(1, runs.pid());
  segment->set_process(2, ends.pid());
  while (zero.peer_state(2) == TANDEM_PEER_RUNS) std::this_thread::yield();
  EXPECT_EQ(zero.peer_state(2), TANDEM_PEER_ENDED);  // although nobody has reaped it
  EXPECT_EQ(zero.peer_state(1), TANDEM_PEER_RUNS);
  runs.kill();
  while (zero.peer_state(1) == TANDEM_PEER_RUNS) std::this_thread::yield();
  EXPECT_EQ(zero.peer_state(1), TANDEM_PEER_ENDED);
}

TEST(LocalSegment, ProcessOfAnAttachedRank_IsItsOwn) {
  const auto segment = std::make_shared<LocalSegment>(2);
  const LocalTransport one(segment, 1);
  segment->set_process(1, 1);
  EXPECT_EQ(segment->rank(1).pid, getpid());
}

TEST(LocalSegment, AnotherFile_Throws) {
  SharedMemory memory(100000, "a test", "");
  EXPECT_EQ(error_text([&] {
              LocalSegment(Descriptor(dup(memory.fd())));
            }).rfind("[group] expected the shared memory of ranks", 0),
            0U);
  EXPECT_EQ(error_text([] { LocalSegment(0); }), "[group] expected 1 to 256 ranks on one machine, got 0");
}

}  // namespace
}  // namespace tandem
