#include "tandem/dist/transport_group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/build_info.h"
#include "tandem/core/check.h"
#include "tandem/dist/collectives.h"
#include "tandem/dist/communicator.h"
#include "tandem/dist/local_transport.h"
#include "tandem/dist/process_end.h"
#include "tandem/dist/shared_reduce.h"

namespace tandem {
namespace {

// The first message of a rank. Its layout never changes, so that programs of different versions understand
// it.
struct Hello {
  std::uint64_t magic = 0x6b6e61726d646e74;  // "tndmrank"
  std::uint64_t protocol = 1;                // changes with any message or tag
  std::uint64_t greeting_bytes = 0;
};

class JobState : public Work::State {
 public:
  JobState(Communicator& communicator, std::shared_ptr<Communicator::Job> job)
      : communicator_(&communicator), job_(std::move(job)) {}
  void wait() override { communicator_->wait(*job_); }

 private:
  Communicator* communicator_;
  std::shared_ptr<Communicator::Job> job_;
};

class TransportGroup : public Group {
 public:
  TransportGroup(const Place& place, const std::function<TandemTransport()>& open,
                 const GroupOptions& options, std::shared_ptr<LocalSegment> segment)
      : Group(place.rank),
        segment_(std::move(segment)),
        communicator_(open, {.start_limit_s = options.start_limit_s,
                             .end_limit_s = options.stall_limit_s,
                             .sums_use_transport = segment_ == nullptr}) {
    check(communicator_.rank() == place.rank && communicator_.size() == place.size,
          "[group] expected rank {} of {} from the transport, got {} of {}", place.rank, place.size,
          communicator_.rank(), communicator_.size());
    const std::vector<Greeting> all = greet(place, options.must_agree);
    check_agreement(all);
    places_ = number_nodes(all);
    // Local ranks see each other's ends in the segment.
    communicator_.begin_watch(places_, options.limit_s, options.stall_limit_s,
                              segment_ ? std::vector<int>() : visible_processes(all, place.rank));
  }

  const std::vector<Place>& places() const override { return places_; }
  Work reduce(const Partials& mine, const Tensor& out) override;
  bool sums_in_background() const override { return segment_ == nullptr; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    gather("an all-gather", mine, all);
  }
  void broadcast(std::span<std::byte> bytes, int from) override;
  void fail(std::string_view why) noexcept override;
  void throw_if_failed() override { communicator_.throw_if_failed(); }

 private:
  std::vector<Greeting> greet(const Place& place, const NamedTexts& must_agree);
  void gather(const char* name, std::span<const std::byte> mine, std::span<std::byte> all);
  std::unique_ptr<Operation> make_piece(const ReduceArrays& arrays, std::int64_t number);

  std::vector<Place> places_;
  std::shared_ptr<LocalSegment> segment_;  // null: sums go through the transport
  std::shared_ptr<const TreeSum> tree_;    // of the last sum
  std::int64_t small_count_ = 0, piece_count_ = 0;
  ScratchPool scratch_;
  Communicator communicator_;  // ends before what its operations use
};

std::vector<Greeting> TransportGroup::greet(const Place& place, const NamedTexts& must_agree) {
  Greeting mine{
      place, {{"version", std::string(build_info().version)}, {"commit", std::string(build_info().commit)}}};
  if (place.pid == ::getpid()) mine.process_domain = process_domain();
  mine.must_agree.insert(mine.must_agree.end(), must_agree.begin(), must_agree.end());
  std::string text = encode(mine);
  const Hello hello{.greeting_bytes = text.size()};
  const auto size = static_cast<std::size_t>(communicator_.size());
  std::vector<Hello> hellos(size);
  gather("the start", std::as_bytes(std::span(&hello, 1)), std::as_writable_bytes(std::span(hellos)));
  std::size_t max = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    check(hellos[rank].magic == hello.magic && hellos[rank].protocol == hello.protocol,
          "[group] ranks {} and {} run different programs: protocols {} and {}", place.rank, rank,
          hello.protocol, hellos[rank].protocol);
    max = std::max<std::size_t>(max, hellos[rank].greeting_bytes);
  }
  text.resize(max);
  std::string all(max * size, '\0');
  gather("the start", std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(all)));
  std::vector<Greeting> greetings;
  for (std::size_t rank = 0; rank < size; ++rank)
    greetings.push_back(decode(std::string_view(all).substr(rank * max, hellos[rank].greeting_bytes)));
  return greetings;
}

void TransportGroup::gather(const char* name, std::span<const std::byte> mine, std::span<std::byte> all) {
  check(all.size() == mine.size() * static_cast<std::size_t>(communicator_.size()),
        "[all_gather] expected room for {} times {} bytes, got {}", communicator_.size(), mine.size(),
        all.size());
  const auto job = communicator_.start(
      Communicator::Lane::small, name, 1, [this, mine, all, number = small_count_++](std::int64_t) {
        return std::make_unique<AllGather>(communicator_.transport(), number, mine, all);
      });
  communicator_.wait(*job);
}

void TransportGroup::broadcast(std::span<std::byte> bytes, int from) {
  check(from >= 0 && from < communicator_.size(), "[broadcast] expected a rank below {}, got {}",
        communicator_.size(), from);
  const auto job = communicator_.start(Communicator::Lane::small, "a broadcast", 1,
                                       [this, bytes, from, number = small_count_++](std::int64_t) {
                                         return std::make_unique<Broadcast>(communicator_.transport(), number,
                                                                            bytes, from);
                                       });
  communicator_.wait(*job);
}

Work TransportGroup::reduce(const Partials& mine, const Tensor& out) {
  if (!tree_ || tree_->shards() != mine.shards)
    tree_ = std::make_shared<TreeSum>(mine.shards, communicator_.size());
  const ReduceArrays arrays = reduce_arrays(tree_, place().rank, mine, out);
  const std::int64_t max_floats =
      segment_ ? SharedReduce::max_floats(*segment_, *tree_) : ExchangeReduce::max_floats;
  const std::int64_t pieces = (arrays.size + max_floats - 1) / max_floats;
  const std::int64_t first = std::exchange(piece_count_, piece_count_ + pieces);
  // The tensors live until the job is done.
  const auto make = [this, arrays, max_floats, first, mine, out](std::int64_t piece) {
    const std::int64_t begin = piece * max_floats;
    return make_piece(arrays.piece(begin, std::min(arrays.size, begin + max_floats)), first + piece);
  };
  return Work(std::make_shared<JobState>(
      communicator_, communicator_.start(Communicator::Lane::sums, "a sum", pieces, make)));
}

std::unique_ptr<Operation> TransportGroup::make_piece(const ReduceArrays& arrays, std::int64_t number) {
  if (segment_) return std::make_unique<SharedReduce>(segment_, communicator_.rank(), number, arrays);
  return std::make_unique<ExchangeReduce>(communicator_.transport(), number, arrays, scratch_);
}

void TransportGroup::fail(std::string_view why) noexcept {
  try {
    communicator_.fail(fmt::format("rank {} on {}: {}", place().rank, place().host, why));
  } catch (const std::exception&) {  // no memory for a sentence
    communicator_.fail("");
  }
}

}  // namespace

std::unique_ptr<Group> transport_group(const Place& place, const std::function<TandemTransport()>& open,
                                       const GroupOptions& options, std::shared_ptr<LocalSegment> segment) {
  return std::make_unique<TransportGroup>(place, open, options, std::move(segment));
}

std::unique_ptr<Group> local_group(const Place& place, std::shared_ptr<LocalSegment> segment,
                                   const GroupOptions& options) {
  return transport_group(
      place, [segment, rank = place.rank] { return LocalTransport::open(segment, rank); }, options, segment);
}

}  // namespace tandem
