#include "tandem/dist/communicator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tandem/core/parallel.h"
#include "tandem/core/thread_count.h"
#include "tandem/dist/local_transport.h"

namespace tandem {
namespace {

// The first of two ranks, each with one CPU.
bool first_rank_spins(int local_size) {
  const LocalSegment segment(2);
  Communicator communicator(
      [&] { return LocalTransport::open(std::make_shared<LocalSegment>(Descriptor(dup(segment.fd()))), 0); },
      {});
  EXPECT_FALSE(communicator.may_spin());
  const Place place{.size = 2, .local_size = local_size, .host = "n0", .pid = getpid()};
  communicator.begin_watch({place, place}, 60, 60, {});
  return communicator.may_spin();
}

TEST(Communicator, Spinning_DependsOnTheRanksOfTheNode) {
  const int before = usable_cpus();
  set_usable_cpus(1);
  EXPECT_TRUE(first_rank_spins(1));  // the other rank is on another node
  EXPECT_FALSE(first_rank_spins(2));
  set_usable_cpus(before);
}

}  // namespace
}  // namespace tandem
