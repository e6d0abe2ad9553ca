#include "tandem/device/graph_runner.h"

#include <utility>

#include "tandem/device/buffer.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

// Makes later work on `later` wait for the work that is on `earlier` now.
void order(StreamView earlier, StreamView later) {
  Event reached(earlier.device);
  reached.record(earlier);
  reached.block_stream(later);
}

}  // namespace

void GraphRunner::run(const std::function<void()>& work) {
  const StreamView own = stream_;
  if (!own.device.is_cuda()) return work();
  const StreamView caller = current_stream(own.device);
  constexpr int eager_runs = 2;
  if (eager_runs_ < eager_runs) {
    ++eager_runs_;
    order(caller, own);
    const StreamScope scope(own);
    work();
    order(own, caller);
    return;
  }
  if constexpr (has_cuda) {
    if (!graph_) {
      const StreamScope scope(own);
      auto graph = std::make_shared<Graph>();
      retain_pool(own);
      graph->capture(own, work);
      graph_ = std::move(graph);
    }
    graph_->replay(caller);
  }
}

}  // namespace tandem
