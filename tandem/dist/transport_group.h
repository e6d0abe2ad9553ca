// Groups whose ranks exchange messages through a transport.
#pragma once

#include <functional>
#include <memory>

#include "tandem/dist/group.h"
#include "tandem/dist/handshake.h"
#include "tandem/dist/launch.h"
#include "tandem/dist/local_segment.h"
#include "tandem/dist/transport_abi.h"

namespace tandem {

struct GroupOptions {
  double limit_s = 10;         // a rank that does not answer for so long is lost
  double stall_limit_s = 300;  // likewise one that answers, but takes no part in an operation
  double start_limit_s = 60;   // until all ranks must have started
  NamedTexts must_agree;       // what must be the same on all ranks, besides this program's version
};

// The group of the transport that `open` opens, on the communication thread. `place` is this process; its
// rank and size must be the transport's. Returns when all ranks are there. Error when they do not fit
// together, or one does not come. With a segment, sums are made in the memory that its ranks, all of the
// group, share.
std::unique_ptr<Group> transport_group(const Place& place, const std::function<TandemTransport()>& open,
                                       const GroupOptions& options,
                                       std::shared_ptr<LocalSegment> segment = nullptr);

// The group of local ranks that share a segment.
std::unique_ptr<Group> local_group(const Place& place, std::shared_ptr<LocalSegment> segment,
                                   const GroupOptions& options);

}  // namespace tandem
