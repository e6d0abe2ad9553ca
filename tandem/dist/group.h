// Group: the ranks of a run, which sum gradients and agree on what to do next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/dist/place.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// A rank of the group is gone: its process ended, or it does not answer. Starting again from the last
/// checkpoint may help.
class LostRank : public Error {
 public:
  using Error::Error;
};

/// What a rank brings to a sum over the shards of a batch. With K shards and N ranks, rank r has the shards
/// from ⌊r K / N⌋ to ⌊(r + 1) K / N⌋, and brings the sum of each of the largest nodes of the tree over all
/// shards that lie in that range, from left to right: one if N is a power of two that divides K.
struct Partials {
  std::int64_t shards = 1;
  std::vector<Tensor> sums;  ///< f32, contiguous, of the same number of elements
};

/// What a rank would like to do next, and what all ranks do.
struct Control {
  int stop_signal = 0;     ///< a signal that asks to stop; all: the highest
  bool save = false;       ///< save a checkpoint; all: if any rank wants to
  std::int64_t steps = 0;  ///< steps until the next agreement; all: those of rank 0

  friend bool operator==(const Control&, const Control&) = default;
};

/// An operation under way. It goes on when this object is destroyed; the group must live longer.
class Work {
 public:
  /// How a group waits for an operation.
  class State {
   public:
    virtual ~State() = default;
    virtual void wait() = 0;
  };

  /// Done already.
  Work() = default;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// Returns when the operation is complete. Throws LostRank when a rank is gone, Error when one failed.
  void wait() {
    if (state_) state_->wait();
  }

 private:
  std::shared_ptr<State> state_;
};

/// The ranks of a run, seen by one of them. All ranks call the same operations in the same order. No
/// operation waits forever: when a rank fails, ends or does not answer, the operations of all ranks throw an
/// Error that names it. One thread calls at a time; any may call fail() and throw_if_failed().
class Group {
 public:
  virtual ~Group() = default;

  const Place& place() const { return places()[static_cast<std::size_t>(rank_)]; }
  /// The places of all ranks.
  virtual const std::vector<Place>& places() const = 0;

  /// Starts to sum the partial sums of all ranks along the tree over the shards into `out`, which may be one
  /// of them. The bits of the result depend on the number of shards only. The tensors must not be used before
  /// wait() returns. Throws Error for tensors that do not fit.
  virtual Work reduce(const Partials& mine, const Tensor& out) = 0;
  /// Whether a sum should start as early as possible: it mostly waits for a network. Otherwise it is work for
  /// this process's CPUs, which is done fastest by the thread that waits for it, when nothing else runs.
  virtual bool sums_in_background() const { return false; }
  /// all[r · mine.size() …] = the bytes of rank r. For small data.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Copies the bytes of rank `from` to all ranks.
  virtual void broadcast(std::span<std::byte> bytes, int from) = 0;
  /// Returns when all ranks have called it.
  void barrier() { all_gather({}, {}); }
  /// The same decision on all ranks.
  Control agree(const Control& mine);
  /// Ends the operations of all other ranks with "rank 2 on n3: …", and all later ones of this rank.
  virtual void fail(std::string_view why) noexcept = 0;
  /// For work that goes on outside of the group, as on a GPU: throws what an operation would throw if the
  /// group has failed. Returns at once.
  virtual void throw_if_failed() = 0;

 protected:
  explicit Group(int rank) : rank_(rank) {}

 private:
  int rank_;
};

/// The group of a single process, which waits for nobody.
std::unique_ptr<Group> solo_group();

}  // namespace tandem
