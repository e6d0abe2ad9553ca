#include "tandem/dist/communicator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tandem/core/parallel.h"
#include "tandem/core/thread_count.h"
#include "tandem/dist/group.h"
#include "tandem/dist/local_transport.h"

namespace tandem {
namespace {

// The first of two ranks.
class CommunicatorTest : public testing::Test {
 protected:
  // The other process has ended, if its number is that of no process.
  void begin(int local_size, pid_t other, const std::vector<int>& visible) {
    const Place place{.size = 2, .local_size = local_size, .host = "n0", .pid = getpid()};
    Place second = place;
    second.rank = 1;
    second.pid = other;
    communicator_.begin_watch({place, second}, 60, 60, visible);
  }

  const LocalSegment segment_{2};
  Communicator communicator_{
      [&] { return LocalTransport::open(std::make_shared<LocalSegment>(Descriptor(dup(segment_.fd()))), 0); },
      {}};
};

class OneCpu : public CommunicatorTest {
 protected:
  OneCpu() { set_usable_cpus(1); }
  ~OneCpu() override { set_usable_cpus(before_); }

  const int before_ = usable_cpus();
};

TEST_F(OneCpu, RankOfAnotherNode_LetsThreadsSpin) {
  EXPECT_FALSE(communicator_.may_spin());
  begin(1, getpid(), {});
  EXPECT_TRUE(communicator_.may_spin());
}

TEST_F(OneCpu, RankOfTheSameNode_DoesNotLetThreadsSpin) {
  begin(2, getpid(), {});
  EXPECT_FALSE(communicator_.may_spin());
}

class BrokenOperation : public Operation {
 public:
  bool advance() override { throw Error("[transport] MPI_Isend failed"); }
  int waits_for() const override { return 1; }
};

class FailedMessage : public CommunicatorTest, public testing::WithParamInterface<Communicator::Lane> {
 protected:
  void run() {
    const auto job = communicator_.start(GetParam(), "a test", 1,
                                         [](std::int64_t) { return std::make_unique<BrokenOperation>(); });
    communicator_.wait(*job);
  }
};

INSTANTIATE_TEST_SUITE_P(Lanes, FailedMessage,
                         testing::Values(Communicator::Lane::small, Communicator::Lane::sums));

TEST_P(FailedMessage, ReceiverThatHasEnded_IsTheReason) {
  begin(2, 1 << 30, {1});
  try {
    run();
    FAIL() << "expected LostRank";
  } catch (const LostRank& error) {
    EXPECT_STREQ(error.what(), "rank 1 (host n0, process 1073741824) has ended");
  }
}

TEST_P(FailedMessage, AllRanksRun_IsAnErrorOfItsOwn) {
  begin(2, getpid(), {1});
  try {
    run();
    FAIL() << "expected Error";
  } catch (const Error& error) {
    EXPECT_EQ(dynamic_cast<const LostRank*>(&error), nullptr);
    EXPECT_EQ(error.what(),
              fmt::format("rank 0 (host n0, process {}): [transport] MPI_Isend failed", getpid()));
  }
}

}  // namespace
}  // namespace tandem
