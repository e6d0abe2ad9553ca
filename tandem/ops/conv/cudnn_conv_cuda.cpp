#include "tandem/ops/conv/cudnn_conv.cuh"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/device/buffer.h"
#include "tandem/device/cuda.h"
#include "tandem/device/cuda_dnn.h"
#include "tandem/ops/conv/small_conv.cuh"
#include "tandem/ops/conv/space_to_depth.cuh"

namespace tandem::detail {
namespace {

enum class ConvPass { forward, input_gradient, weight_gradient };

// What an execution plan depends on. Operands: x, weight → y in a forward pass; dy, weight → dx and x, dy →
// dweight in the gradients.
struct PlanKey {
  int device = 0;
  Conv2dPlan plan;
  ConvPass pass = ConvPass::forward;
  // Fused to a forward pass, in this order.
  bool bias = false;  // f32, one per filter
  bool residual = false;
  bool relu = false;

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

struct PlanKeyHash {
  std::size_t operator()(const PlanKey& key) const {
    const Conv2dPlan& p = key.plan;
    std::size_t hash = static_cast<std::size_t>(key.device);
    for (const std::int64_t value : {p.images,
                                     p.channels,
                                     p.filters,
                                     p.groups,
                                     p.in.y,
                                     p.in.x,
                                     p.kernel.y,
                                     p.kernel.x,
                                     p.window.stride.y,
                                     p.window.stride.x,
                                     p.window.padding.y,
                                     p.window.padding.x,
                                     p.window.dilation.y,
                                     p.window.dilation.x,
                                     static_cast<std::int64_t>(p.dtype),
                                     static_cast<std::int64_t>(p.precision),
                                     static_cast<std::int64_t>(key.pass),
                                     std::int64_t{key.bias},
                                     std::int64_t{key.residual},
                                     std::int64_t{key.relu}})
      hash ^= std::hash<std::int64_t>{}(value) + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    return hash;
  }
};

// Ids of the operands in a graph.
enum Uid : std::int64_t {
  uid_x = 1,
  uid_weight,
  uid_y,
  uid_bias,
  uid_residual,
  uid_sum,  // the following ones are intermediate results
  uid_biased,
  uid_added
};

cudnnDataType_t data_type(DType dtype) {
  return dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

struct ExecutionPlan {
  CudnnDescriptor plan;
  std::int64_t workspace = 0;
};

// A tensor with cuDNN's order of axes, (N, C, H, W), and the memory layout (N, H, W, C). Virtual tensors are
// intermediate results that never reach memory.
CudnnDescriptor tensor(Uid uid, std::array<std::int64_t, 4> dims, cudnnDataType_t type,
                       bool is_virtual = false) {
  const auto [n, c, h, w] = dims;
  const std::array<std::int64_t, 4> strides{c * h * w, 1, w * c, c};
  CudnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{uid});
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  if (is_virtual) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  made.finalize();
  return made;
}

CudnnDescriptor geometry(const Window& window) {
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const auto pair = [](YX size) { return std::array<std::int64_t, 2>{size.y, size.x}; };
  CudnnDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pair(window.padding));
  made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pair(window.padding));
  made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, pair(window.stride));
  made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, pair(window.dilation));
  made.finalize();
  return made;
}

CudnnDescriptor pointwise(cudnnPointwiseMode_t mode, const CudnnDescriptor& x, const CudnnDescriptor* b,
                          const CudnnDescriptor& y) {
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  CudnnDescriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
  kind.finalize();
  CudnnDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  made.finalize();
  return made;
}

// Builds the operation graph of a convolution and keeps its descriptors alive until it is finalized.
class GraphBuilder {
 public:
  explicit GraphBuilder(const PlanKey& key) : key_(key), window_(geometry(key.plan.window)) {
    const Conv2dPlan& plan = key.plan;
    const cudnnDataType_t type = data_type(plan.dtype);
    x_ = tensor(uid_x, {plan.images, plan.channels, plan.in.y, plan.in.x}, type);
    weight_ =
        tensor(uid_weight, {plan.filters, plan.channels / plan.groups, plan.kernel.y, plan.kernel.x}, type);
    y_ = output_tensor(uid_y, type);
    switch (key.pass) {
      case ConvPass::forward:
        forward();
        break;
      case ConvPass::input_gradient:
        add_convolution(
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
            y_);
        break;
      case ConvPass::weight_gradient:
        add_convolution(
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
            y_);
        break;
    }
  }

  CudnnDescriptor finish(cudnnHandle_t handle) const {
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const CudnnDescriptor& operation : operations_) handles.push_back(operation.get());
    CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<std::int64_t>(handles.size()), handles.data());
    if (!graph.try_finalize()) return {};
    return graph;
  }

 private:
  struct AttributeNames {
    cudnnBackendAttributeName_t x, weight, y, window, alpha, beta;
  };

  CudnnDescriptor output_tensor(Uid uid, cudnnDataType_t type, bool is_virtual = false) const {
    const Conv2dPlan& plan = key_.plan;
    return tensor(uid, {plan.images, plan.filters, plan.out.y, plan.out.x}, type, is_virtual);
  }

  void add_convolution(cudnnBackendDescriptorType_t type, const AttributeNames& names,
                       const CudnnDescriptor& y) {
    CudnnDescriptor made(type);
    made.set(names.x, x_);
    made.set(names.weight, weight_);
    made.set(names.y, y);
    made.set(names.window, window_);
    made.set(names.alpha, 1.0f);
    made.set(names.beta, 0.0f);
    made.finalize();
    operations_.push_back(std::move(made));
  }

  // Intermediate results are f32.
  void forward() {
    std::vector<std::pair<cudnnPointwiseMode_t, Uid>> steps;
    if (key_.bias) steps.push_back({CUDNN_POINTWISE_ADD, uid_bias});
    if (key_.residual) steps.push_back({CUDNN_POINTWISE_ADD, uid_residual});
    if (key_.relu) steps.push_back({CUDNN_POINTWISE_RELU_FWD, uid_y});
    constexpr Uid intermediate[] = {uid_sum, uid_biased, uid_added};
    virtual_.reserve(std::size(intermediate));
    const CudnnDescriptor* current = steps.empty() ? &y_ : next_virtual(uid_sum);
    add_convolution(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        *current);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto [mode, uid] = steps[i];
      if (uid == uid_bias) bias_ = tensor(uid, {1, key_.plan.filters, 1, 1}, CUDNN_DATA_FLOAT);
      if (uid == uid_residual) residual_ = output_tensor(uid, data_type(key_.plan.dtype));
      const CudnnDescriptor* operand = uid == uid_bias ? &bias_ : uid == uid_residual ? &residual_ : nullptr;
      const CudnnDescriptor* to = i + 1 == steps.size() ? &y_ : next_virtual(intermediate[i + 1]);
      operations_.push_back(pointwise(mode, *current, operand, *to));
      current = to;
    }
  }

  const CudnnDescriptor* next_virtual(Uid uid) {
    virtual_.push_back(output_tensor(uid, CUDNN_DATA_FLOAT, true));
    return &virtual_.back();
  }

  PlanKey key_;
  CudnnDescriptor window_, x_, weight_, y_, bias_, residual_;
  std::vector<CudnnDescriptor> virtual_, operations_;
};

bool has_note(const CudnnDescriptor& engine, cudnnBackendNumericalNote_t wanted) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes;
  std::int64_t count = 0;
  cudnn_check(
      cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               static_cast<std::int64_t>(notes.size()), &count, notes.data()),
      "cudnnBackendGetAttribute");
  return std::find(notes.begin(), notes.begin() + count, wanted) != notes.begin() + count;
}

// Deterministic engines only, and none that rounds f32 inputs when full f32 is required.
bool is_allowed(const CudnnDescriptor& configuration, const Conv2dPlan& plan) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  cudnn_check(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &handle),
              "cudnnBackendGetAttribute");
  if (has_note(engine, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (plan.dtype == DType::f32 && plan.precision == MatmulPrecision::fp32)
    return !has_note(engine, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
           !has_note(engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return true;
}

std::vector<CudnnDescriptor> ranked_configurations(const CudnnDescriptor& graph,
                                                   cudnnBackendHeurMode_t mode) {
  CudnnDescriptor ranking(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  ranking.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  ranking.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!ranking.try_finalize()) return {};
  std::int64_t count = 0;
  cudnn_check(cudnnBackendGetAttribute(ranking.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "cudnnBackendGetAttribute");
  std::vector<CudnnDescriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configurations.back().get());
  }
  cudnn_check(cudnnBackendGetAttribute(ranking.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, handles.data()),
              "cudnnBackendGetAttribute");
  configurations.resize(static_cast<std::size_t>(count));
  return configurations;
}

// Plans that need more workspace are skipped.
constexpr std::int64_t max_workspace = std::int64_t{4} << 30;

// Null where cuDNN has no allowed engine.
std::unique_ptr<ExecutionPlan> build(const PlanKey& key, cudnnHandle_t handle) {
  const CudnnDescriptor graph = GraphBuilder(key).finish(handle);
  if (!graph.get()) return nullptr;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const CudnnDescriptor& configuration : ranked_configurations(graph, mode)) {
      if (!is_allowed(configuration, key.plan)) continue;
      auto made = std::make_unique<ExecutionPlan>();
      made->plan = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
      made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (!made->plan.try_finalize()) continue;
      std::int64_t count = 0;
      cudnn_check(cudnnBackendGetAttribute(made->plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &count, &made->workspace),
                  "cudnnBackendGetAttribute");
      if (made->workspace <= max_workspace) return made;
    }
  }
  return nullptr;
}

// An LRU cache of the plans of one thread: plans belong to a cuDNN handle, and handles are per thread. Plans
// captured into a CUDA graph are never evicted, because the graph keeps launching their kernels.
class PlanCache {
 public:
  // Null where cuDNN has no plan for the key.
  const ExecutionPlan* find_or_build(const PlanKey& key, cudnnHandle_t handle, bool capturing) {
    const auto found = index_.find(key);
    if (found == index_.end()) {
      entries_.push_front({.key = key, .plan = build(key, handle), .captured = false});
      index_.emplace(key, entries_.begin());
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
    PlanKey key;
    std::unique_ptr<ExecutionPlan> plan;
    bool captured;
  };

  void evict() {
    for (auto it = entries_.end(); entries_.size() > max_plans && it != std::next(entries_.begin());) {
      --it;
      if (it->captured) continue;
      index_.erase(it->key);
      it = entries_.erase(it);
    }
  }

  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<PlanKey, std::list<Entry>::iterator, PlanKeyHash> index_;
};

bool is_capturing(StreamView stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(cuda_stream(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// cuDNN takes operands as untyped pointers. Operands that are null are skipped.
struct Operand {
  Uid uid;
  const void* pointer;
};

bool execute(const PlanKey& key, std::initializer_list<Operand> operands, StreamView stream) {
  const cudnnHandle_t handle = cudnn_handle(stream);
  thread_local PlanCache plans;
  const ExecutionPlan* plan = plans.find_or_build(key, handle, is_capturing(stream));
  if (!plan) return false;

  const Buffer workspace(static_cast<std::size_t>(plan->workspace), stream);
  std::vector<std::int64_t> uids;
  std::vector<const void*> pointers;
  for (const Operand& operand : operands) {
    if (!operand.pointer) continue;
    uids.push_back(operand.uid);
    pointers.push_back(operand.pointer);
  }
  const void* const scratch = workspace.data();
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<std::int64_t>(pointers.size()), pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
  pack.finalize();
  cudnn_check(cudnnBackendExecute(handle, plan->plan.get(), pack.get()), "cudnnBackendExecute");
  return true;
}

Buffer allocate(std::int64_t elements, DType dtype, StreamView stream) {
  return Buffer(static_cast<std::size_t>(elements) * size_of(dtype), stream);
}

}  // namespace

bool cudnn_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const Conv2dEpilogue& epilogue, StreamView stream) {
  if (plan.dtype == DType::f64) return false;
  PlanKey key{.device = stream.device.index,
              .plan = plan,
              .pass = ConvPass::forward,
              .bias = epilogue.bias != nullptr,
              .residual = epilogue.residual != nullptr,
              .relu = epilogue.activation == FusedActivation::relu};
  const auto run = [&](const std::byte* images, const std::byte* filters) {
    return execute(key,
                   {{uid_x, images},
                    {uid_weight, filters},
                    {uid_y, y},
                    {uid_bias, epilogue.bias},
                    {uid_residual, epilogue.residual}},
                   stream);
  };
  if (!is_space_to_depth_profitable(plan)) return run(x, weight);
  const SpaceToDepth mapping = make_space_to_depth(plan);
  key.plan = mapping.plan;
  const Conv2dSizes sizes = sizes_of(mapping.plan);
  const Buffer new_x = allocate(sizes.x, plan.dtype, stream);
  const Buffer new_weight = allocate(sizes.weight, plan.dtype, stream);
  space_to_depth_images(mapping, new_x.data(), x, stream);
  space_to_depth_weight(mapping, new_weight.data(), weight, stream);
  if (is_small_conv_profitable(mapping.plan, stream.device)) {
    small_conv2d(mapping.plan, y, new_x.data(), new_weight.data(), epilogue, false, stream);
    return true;
  }
  return run(new_x.data(), new_weight.data());
}

bool cudnn_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy, const std::byte* weight,
                          StreamView stream) {
  if (plan.dtype == DType::f64) return false;
  const PlanKey key{.device = stream.device.index, .plan = plan, .pass = ConvPass::input_gradient};
  return execute(key, {{uid_x, dx}, {uid_weight, weight}, {uid_y, dy}}, stream);
}

bool cudnn_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                           const std::byte* x, StreamView stream) {
  if (plan.dtype == DType::f64) return false;
  PlanKey key{.device = stream.device.index, .plan = plan, .pass = ConvPass::weight_gradient};
  const bool transforms = is_space_to_depth_profitable(plan);
  if (!transforms && plan.dtype != DType::bf16)
    return execute(key, {{uid_x, x}, {uid_weight, dweight}, {uid_y, dy}}, stream);

  // cuDNN writes the gradient in the layout and dtype of the images; depth_to_space_weight() brings it back.
  const SpaceToDepth mapping =
      transforms ? make_space_to_depth(plan) : SpaceToDepth{.plan = plan, .original = plan};
  key.plan = mapping.plan;
  const Conv2dSizes sizes = sizes_of(mapping.plan);
  const Buffer new_x = allocate(transforms ? sizes.x : 0, plan.dtype, stream);
  const Buffer new_dweight = allocate(sizes.weight, plan.dtype, stream);
  if (transforms) space_to_depth_images(mapping, new_x.data(), x, stream);
  if (!execute(key, {{uid_x, transforms ? new_x.data() : x}, {uid_weight, new_dweight.data()}, {uid_y, dy}},
               stream))
    return false;
  depth_to_space_weight(mapping, dweight, new_dweight.data(), stream);
  return true;
}

}  // namespace tandem::detail
