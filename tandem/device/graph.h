// A CUDA graph: work captured from a stream once and replayed with a single call. CUDA only.
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

  // Records what `work` launches on `stream` without running it. The memory it uses must stay allocated for
  // as long as the graph is replayed: use a separate stream, whose pool nothing else allocates from.
  void capture(StreamView stream, const std::function<void()>& work);
  bool captured() const { return handle_ != nullptr; }
  void replay(StreamView stream) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace tandem
