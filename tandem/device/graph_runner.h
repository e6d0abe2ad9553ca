// Runs the same work repeatedly. On CUDA the first runs are eager, which warms up memory pools and libraries;
// the next is captured as a graph, and later runs replay the graph.
#pragma once

#include <functional>
#include <memory>

#include "tandem/device/graph.h"
#include "tandem/device/stream.h"

namespace tandem {

class GraphRunner {
 public:
  explicit GraphRunner(Device device) : stream_(device) {}

  // Runs `work` in order with the calling thread's stream. A replay does not call `work`, so it must launch
  // the same operations every time. `work` allocates from a private stream whose freed blocks nothing else
  // reuses, so a replay never overwrites memory in use elsewhere. Memory that `work` reads but did not
  // allocate must not move, and runs must not overlap.
  void run(const std::function<void()>& work);

  bool captured() const { return graph_ != nullptr; }

 private:
  Stream stream_;
  int eager_runs_ = 0;
  std::shared_ptr<Graph> graph_;  // shared_ptr because a build without CUDA does not define ~Graph()
};

}  // namespace tandem
