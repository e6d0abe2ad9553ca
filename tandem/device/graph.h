// Work captured once and replayed: what a stream would do, recorded while ordinary code runs, then started
// again and again by a single call. CUDA only.
#pragma once

#include <functional>

#include "tandem/device/stream.h"

namespace tandem {

class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(Graph&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Graph& operator=(Graph&&) = delete;

  // Records what `work` puts on `stream`; nothing is computed yet. The memory it uses must stay as it is for
  // as long as the graph is replayed: give it a stream of its own, whose pool nobody else takes from.
  void capture(StreamView stream, const std::function<void()>& work);
  bool captured() const { return handle_ != nullptr; }
  void replay(StreamView stream) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace tandem
