#include "tandem/data/loader/make_source.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/loader/augmented_source.h"

namespace tandem {

std::unique_ptr<BatchSource> make_source(std::shared_ptr<const detail::SampleStore> samples,
                                         const BatchPlan& plan, const Transform& transform, Device device,
                                         const LoaderOptions& options, bool on_gpu) {
  check_batch_plan(plan);
  check(plan.samples <= samples->count(), "[loader] expected {} samples, got {}", plan.samples,
        samples->count());
  const bool without_workers = device.is_cuda() ? on_gpu : options.workers == 0;
  if (transform.empty() || without_workers)
    if (auto source = samples->device_source(plan, transform, device, options.timeline)) return source;
  if (device.is_cuda() && on_gpu && options.kind == WorkerKind::thread)
    if (auto source = samples->engine_source(plan, transform, device, options)) return source;
  if (device.is_cuda())
    return std::make_unique<DevicePrefetcher>(std::move(samples), plan, transform, options, device);
  return std::make_unique<HostPrefetcher>(std::move(samples), plan, transform, options);
}

}  // namespace tandem
