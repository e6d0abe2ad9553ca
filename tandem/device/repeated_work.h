// Work that is done again and again: ordinary code the first times, which bring memory and libraries into
// their steady state; on CUDA then captured as a graph, and only replayed from then on.
#pragma once

#include <functional>
#include <memory>

#include "tandem/device/graph.h"
#include "tandem/device/stream.h"

namespace tandem {

class RepeatedWork {
 public:
  explicit RepeatedWork(Device device) : stream_(device) {}

  // Does `work`, ordered on the calling thread's stream; a replay does not call it, so it must put the same
  // on the device every time. Memory it takes comes from a stream of its own, whose freed blocks nobody else
  // gets: so neither can a replay write into what others hold, nor they into what it still reads. What it
  // reads and did not make itself must stay where it is, and runs must not overlap.
  void run(const std::function<void()>& work);

  bool captured() const { return graph_ != nullptr; }

 private:
  Stream stream_;
  int eager_runs_ = 0;
  std::shared_ptr<Graph> graph_;  // a build without CUDA has no Graph to own
};

}  // namespace tandem
