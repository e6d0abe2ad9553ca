// A stream whose kernels are started before those of other streams, when multiprocessors become free: for
// short work that other work waits for.
#pragma once

#include "tandem/device/stream.h"

namespace tandem {

// As Stream; on the CPU there is no difference.
class PriorityStream {
 public:
  explicit PriorityStream(Device device);
  ~PriorityStream();
  PriorityStream(const PriorityStream&) = delete;
  PriorityStream& operator=(const PriorityStream&) = delete;

  StreamView view() const { return view_; }
  operator StreamView() const { return view_; }

 private:
  StreamView view_;
};

template <Backend B>
void* create_priority_stream(Device device);

}  // namespace tandem
