// NcclGroup: moves data between the GPUs of the ranks of a group, by NCCL.
//
// Everything is ordered on the streams it is given and can be captured in a graph. NCCL's kernels wait for
// the other ranks without a limit, so a thread watches the group: when a rank fails or is lost, it aborts
// what NCCL is doing, the streams go on with wrong data, and end_work() throws.
#pragma once

#include <memory>
#include <span>
#include <thread>

#include "tandem/device/stream.h"
#include "tandem/dist/group.h"

namespace tandem {

class NcclGroup {
 public:
  // What runs at the same time on different streams needs a lane each.
  enum class Lane { sums, values };

  // Connects the GPUs of all ranks, of which each has its own. Error when NCCL is missing or refuses;
  // LostRank or Error when the group fails meanwhile. The group must live longer.
  NcclGroup(Group& group, Device device);
  // The graphs that were captured must have been destroyed before.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  const Place& place() const { return group_.place(); }
  Device device() const { return device_; }

  struct Transfer {
    int rank;
    Tensor tensor;  // contiguous
  };
  // Sends and receives at the same time. What two ranks exchange is matched in the order of the lists.
  void exchange(Lane lane, std::span<const Transfer> sends, std::span<const Transfer> receives,
                StreamView stream);
  // `all`, r-th part = `mine` of rank r; contiguous. `mine` may be this rank's part of `all`.
  void all_gather(Lane lane, const Tensor& mine, const Tensor& all, StreamView stream);

  // Between these calls the ranks wait for each other. The second comes after the host has waited for the
  // streams; what they have computed is wrong if it throws.
  void begin_work();
  void end_work();

 private:
  struct State;

  template <class Calls>
  void call(Calls&& calls);
  void throw_if_failed();
  void watch();
  void abort() noexcept;

  Group& group_;
  const Device device_;
  const std::shared_ptr<State> state_;
  std::thread watch_;
};

}  // namespace tandem
