// Ranks as threads of the test: each has its own mapping of the segment and its own group.
#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/dist/local_transport.h"
#include "tandem/dist/transport_group.h"

namespace tandem {

using RankBody = std::function<void(Group&)>;
// How a rank gets its group.
using MakeGroup =
    std::function<std::unique_ptr<Group>(const Place& place, std::shared_ptr<LocalSegment> segment)>;

inline MakeGroup over_shared_memory(const GroupOptions& options = {}) {
  return [=](const Place& place, std::shared_ptr<LocalSegment> segment) {
    return local_group(place, std::move(segment), options);
  };
}

inline MakeGroup over_messages(const GroupOptions& options = {}) {
  return [=](const Place& place, const std::shared_ptr<LocalSegment>& segment) {
    return transport_group(
        place, [&] { return LocalTransport::open(segment, place.rank); }, options);
  };
}

// Runs body(group) on every rank. Returns each rank's Error, or an empty text.
inline std::vector<std::string> on_ranks(int ranks, const MakeGroup& make, const RankBody& body) {
  const LocalSegment segment(ranks);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const Place place{
            .rank = rank, .size = ranks, .host = "n" + std::to_string(rank / 2), .pid = 100 + rank};
        const auto group = make(place, std::make_shared<LocalSegment>(Descriptor(dup(segment.fd()))));
        body(*group);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace tandem
