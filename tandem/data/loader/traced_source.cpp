#include "tandem/data/loader/traced_source.h"

namespace tandem {

SourceBlock TracedSource::next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
  timeline_.end();
  const StreamView stream = current_stream(device());
  const bool on_gpu = device().is_cuda();
  Timeline::Mark begin = on_gpu ? timeline_.mark(stream) : nullptr;
  const SourceBlock block = source_->next_block(epoch, first, max_count);
  if (on_gpu)
    timeline_.add({TrackKind::device, device().index}, on_device_, std::move(begin), timeline_.mark(stream),
                  device(), {"positions", epoch, first, block.count});
  const std::int64_t batch = plan_.local_batch_size();
  timeline_.begin("steps", {"steps", epoch, first / batch, (block.count + batch - 1) / batch}, stream);
  return block;
}

}  // namespace tandem
