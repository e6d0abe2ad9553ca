#include "tandem/device/repeated_work.h"

#include <utility>

#include "tandem/device/buffer.h"

namespace tandem {
namespace {

// What is put on `later` from now on starts after what `earlier` has.
void order(StreamView earlier, StreamView later) {
  Event reached(earlier.device);
  reached.record(earlier);
  reached.hold_back(later);
}

}  // namespace

void RepeatedWork::run(const std::function<void()>& work) {
  const StreamView own = stream_;
  if (!own.device.is_cuda()) return work();
  const StreamView callers = current_stream(own.device);
  constexpr int eager_runs = 2;
  if (eager_runs_ < eager_runs) {
    ++eager_runs_;
    order(callers, own);
    const StreamScope scope(own);
    work();
    order(own, callers);
    return;
  }
  if constexpr (has_cuda) {
    if (!graph_) {
      const StreamScope scope(own);
      auto graph = std::make_shared<Graph>();
      keep_cached_memory(own);
      graph->capture(own, work);
      graph_ = std::move(graph);
    }
    graph_->replay(callers);
  }
}

}  // namespace tandem
