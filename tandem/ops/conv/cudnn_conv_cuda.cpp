#include "tandem/ops/conv/cudnn_conv.cuh"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <list>
#include <memory>
#include <unordered_map>

#include "tandem/device/buffer.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/cast_kernel.h"
#include "tandem/ops/conv/cudnn_plan.cuh"
#include "tandem/ops/conv/small_conv.cuh"
#include "tandem/ops/conv/space_to_depth.cuh"

namespace tandem::detail {
namespace {

// An LRU cache of the plans of one thread: plans belong to a cuDNN handle, and handles are per thread. Plans
// captured into a CUDA graph are never evicted, because the graph keeps launching their kernels.
class PlanCache {
 public:
  // Null where cuDNN has no plan for the graph.
  const ExecutionPlan* find_or_build(const ConvGraph& graph, StreamView stream, bool capturing) {
    const auto found = index_.find(graph);
    if (found == index_.end()) {
      entries_.push_front({.graph = graph, .plan = build_plan(graph, stream), .captured = false});
      index_.emplace(graph, entries_.begin());
      if (!capturing) evict();
    } else {
      entries_.splice(entries_.begin(), entries_, found->second);
    }
    Entry& entry = entries_.front();
    entry.captured = entry.captured || capturing;
    return entry.plan.get();
  }

 private:
  static constexpr std::size_t max_plans = 256;

  struct Entry {
    ConvGraph graph;
    std::unique_ptr<ExecutionPlan> plan;
    bool captured;
  };

  void evict() {
    for (auto it = entries_.end(); entries_.size() > max_plans && it != std::next(entries_.begin());) {
      --it;
      if (it->captured) continue;
      index_.erase(it->graph);
      it = entries_.erase(it);
    }
  }

  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<ConvGraph, std::list<Entry>::iterator, ConvGraphHash> index_;
};

bool is_capturing(StreamView stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(cuda_stream(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// False where cuDNN has no plan for the graph.
bool run(const ConvGraph& graph, std::initializer_list<Operand> operands, StreamView stream) {
  thread_local PlanCache plans;
  const ExecutionPlan* plan = plans.find_or_build(graph, stream, is_capturing(stream));
  if (plan) execute(*plan, operands, stream);
  return plan != nullptr;
}

// cuDNN compiles kernels with a bf16 bias at run time, for every number of images anew. For few images that
// takes longer than it saves.
constexpr std::int64_t min_images_for_bf16_bias = 32;

Buffer allocate(std::int64_t elements, DType dtype, StreamView stream) {
  return Buffer(static_cast<std::size_t>(elements) * size_of(dtype), stream);
}

}  // namespace

bool cudnn_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const Conv2dEpilogue& epilogue, StreamView stream) {
  if (plan.dtype == DType::f64) return false;
  ConvGraph graph{.device = stream.device.index,
                  .plan = plan,
                  .residual = epilogue.residual != nullptr,
                  .relu = epilogue.activation == FusedActivation::relu};
  const auto convolve = [&](const std::byte* images, const std::byte* filters) {
    const auto with_bias = [&](const std::byte* bias) {
      return run(graph,
                 {{uid_x, images},
                  {uid_weight, filters},
                  {uid_y, y},
                  {uid_bias, bias},
                  {uid_residual, epilogue.residual}},
                 stream);
    };
    if (epilogue.bf16_bias && plan.images >= min_images_for_bf16_bias) {
      graph.bias = DType::bf16;
      if (with_bias(epilogue.bf16_bias)) return true;
    }
    graph.bias = epilogue.bias ? std::optional(DType::f32) : std::nullopt;
    return with_bias(epilogue.bias);
  };
  if (!is_space_to_depth_profitable(plan)) return convolve(x, weight);
  const SpaceToDepth mapping = make_space_to_depth(plan);
  graph.plan = mapping.plan;
  const Conv2dSizes sizes = sizes_of(mapping.plan);
  const Buffer new_x = allocate(sizes.x, plan.dtype, stream);
  const Buffer new_weight = allocate(sizes.weight, plan.dtype, stream);
  space_to_depth_images(mapping, new_x.data(), x, stream);
  space_to_depth_weight(mapping, new_weight.data(), weight, stream);
  if (is_small_conv_profitable(mapping.plan, stream.device)) {
    small_conv2d(mapping.plan, y, new_x.data(), new_weight.data(), epilogue, false, stream);
    return true;
  }
  return convolve(new_x.data(), new_weight.data());
}

bool cudnn_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy, const std::byte* weight,
                          StreamView stream) {
  if (plan.dtype == DType::f64) return false;
  const ConvGraph graph{.device = stream.device.index, .plan = plan, .pass = ConvPass::input_gradient};
  return run(graph, {{uid_x, dx}, {uid_weight, weight}, {uid_y, dy}}, stream);
}

bool cudnn_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                           const std::byte* x, StreamView stream) {
  if (plan.dtype == DType::f64) return false;
  ConvGraph graph{.device = stream.device.index, .plan = plan, .pass = ConvPass::weight_gradient};
  const bool transforms = is_space_to_depth_profitable(plan);
  if (!transforms && plan.dtype != DType::bf16)
    return run(graph, {{uid_x, x}, {uid_weight, dweight}, {uid_y, dy}}, stream);

  // cuDNN writes the gradient in the layout and dtype of the images.
  const SpaceToDepth mapping =
      transforms ? make_space_to_depth(plan) : SpaceToDepth{.plan = plan, .original = plan};
  graph.plan = mapping.plan;
  const Conv2dSizes sizes = sizes_of(mapping.plan);
  const Buffer new_x = allocate(transforms ? sizes.x : 0, plan.dtype, stream);
  const Buffer new_dweight = allocate(sizes.weight, plan.dtype, stream);
  if (transforms) space_to_depth_images(mapping, new_x.data(), x, stream);
  if (!run(graph, {{uid_x, transforms ? new_x.data() : x}, {uid_weight, new_dweight.data()}, {uid_y, dy}},
           stream))
    return false;
  if (transforms)
    depth_to_space_weight(mapping, dweight, new_dweight.data(), stream);
  else
    cast_kernel<Backend::cuda>(DType::f32, DType::bf16,
                               make_layout<2>(Shape{sizes.weight}, {Dims{1}, Dims{1}}), dweight,
                               new_dweight.data(), stream);
  return true;
}

}  // namespace tandem::detail
