#include "tandem/ops/conv/cudnn_plan.cuh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "tandem/device/buffer.h"
#include "tandem/device/gpu_identity.h"
#include "tandem/ops/conv/cudnn_plan_table.h"

namespace tandem::detail {
namespace {

cudnnDataType_t data_type(DType dtype) {
  return dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

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
  explicit GraphBuilder(const ConvGraph& graph) : graph_(graph), window_(geometry(graph.plan.window)) {
    const Conv2dPlan& plan = graph.plan;
    const cudnnDataType_t type = data_type(plan.dtype);
    x_ = tensor(uid_x, {plan.images, plan.channels, plan.in.y, plan.in.x}, type);
    weight_ =
        tensor(uid_weight, {plan.filters, plan.channels / plan.groups, plan.kernel.y, plan.kernel.x}, type);
    y_ = output_tensor(uid_y, type);
    switch (graph.pass) {
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
    const Conv2dPlan& plan = graph_.plan;
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
    const std::pair add_bias{CUDNN_POINTWISE_ADD, uid_bias};
    if (graph_.bias == DType::f32) steps.push_back(add_bias);
    if (graph_.residual) steps.push_back({CUDNN_POINTWISE_ADD, uid_residual});
    if (graph_.bias == DType::bf16) steps.push_back(add_bias);
    if (graph_.relu) steps.push_back({CUDNN_POINTWISE_RELU_FWD, uid_y});
    constexpr Uid intermediate[] = {uid_sum, uid_second, uid_third};
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
      if (uid == uid_bias) bias_ = tensor(uid, {1, graph_.plan.filters, 1, 1}, data_type(*graph_.bias));
      if (uid == uid_residual) residual_ = output_tensor(uid, data_type(graph_.plan.dtype));
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

  ConvGraph graph_;
  CudnnDescriptor window_, x_, weight_, y_, bias_, residual_;
  std::vector<CudnnDescriptor> virtual_, operations_;
};

template <class T>
T attribute(const CudnnDescriptor& of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  T value{};
  std::int64_t count = 0;
  cudnn_check(cudnnBackendGetAttribute(of.get(), name, type, 1, &count, &value), "cudnnBackendGetAttribute");
  return value;
}

// Descriptors are created first and filled by cuDNN; returns those that it filled.
std::vector<CudnnDescriptor> descriptors(const CudnnDescriptor& of, cudnnBackendAttributeName_t name,
                                         cudnnBackendDescriptorType_t type, std::int64_t max_count) {
  std::vector<CudnnDescriptor> filled;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < max_count; ++i) {
    filled.emplace_back(type);
    handles.push_back(filled.back().get());
  }
  std::int64_t count = 0;
  cudnn_check(cudnnBackendGetAttribute(of.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max_count, &count,
                                       handles.data()),
              "cudnnBackendGetAttribute");
  filled.resize(static_cast<std::size_t>(std::min(count, max_count)));
  return filled;
}

CudnnDescriptor engine_of(const CudnnDescriptor& configuration) {
  return std::move(
      descriptors(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1).front());
}

bool has_note(const CudnnDescriptor& engine, cudnnBackendNumericalNote_t wanted) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes;
  std::int64_t count = 0;
  cudnn_check(
      cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               static_cast<std::int64_t>(notes.size()), &count, notes.data()),
      "cudnnBackendGetAttribute");
  return std::find(notes.begin(), notes.begin() + count, wanted) != notes.begin() + count;
}

bool is_allowed(const CudnnDescriptor& configuration, const Conv2dPlan& plan) {
  const CudnnDescriptor engine = engine_of(configuration);
  if (has_note(engine, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (plan.dtype == DType::f32 && plan.precision == MatmulPrecision::fp32)
    return !has_note(engine, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
           !has_note(engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return true;
}

std::string_view preferred_engine_on(Device device, const ConvGraph& graph) {
  thread_local std::map<int, GpuIdentity> known;
  auto found = known.find(device.index);
  if (found == known.end()) found = known.emplace(device.index, gpu_identity(device)).first;
  return preferred_engine(preferred_engines(), found->second.name, found->second.cudnn, graph);
}

}  // namespace

CudnnDescriptor operation_graph(const ConvGraph& graph, cudnnHandle_t handle) {
  return GraphBuilder(graph).finish(handle);
}

std::vector<CudnnDescriptor> ranked_engines(const CudnnDescriptor& operations, const Conv2dPlan& plan,
                                            cudnnBackendHeurMode_t mode) {
  CudnnDescriptor ranking(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  ranking.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
  ranking.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!ranking.try_finalize()) return {};
  std::int64_t count = 0;
  cudnn_check(cudnnBackendGetAttribute(ranking.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "cudnnBackendGetAttribute");
  std::vector<CudnnDescriptor> ranked =
      descriptors(ranking, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
  std::erase_if(ranked, [&](const CudnnDescriptor& each) { return !is_allowed(each, plan); });
  return ranked;
}

std::string engine_name(const CudnnDescriptor& configuration) {
  std::map<int, std::int64_t> knobs;
  for (const CudnnDescriptor& choice :
       descriptors(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                   CUDNN_KNOB_TYPE_COUNTS))
    knobs[attribute<cudnnBackendKnobType_t>(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE)] =
        attribute<std::int64_t>(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64);
  const auto index =
      attribute<std::int64_t>(engine_of(configuration), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64);
  std::string name = fmt::format("eng{}", index);
  for (const auto& [knob, value] : knobs) name += fmt::format("_k{}={}", knob, value);
  return name;
}

std::unique_ptr<ExecutionPlan> build_plan(const CudnnDescriptor& configuration, cudnnHandle_t handle) {
  constexpr std::int64_t max_workspace = std::int64_t{4} << 30;
  auto made = std::make_unique<ExecutionPlan>();
  made->plan = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
  made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (!made->plan.try_finalize()) return nullptr;
  made->workspace =
      attribute<std::int64_t>(made->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
  return made->workspace <= max_workspace ? std::move(made) : nullptr;
}

std::unique_ptr<ExecutionPlan> build_plan(const ConvGraph& graph, StreamView stream) {
  const cudnnHandle_t handle = cudnn_handle(stream);
  const CudnnDescriptor operations = operation_graph(graph, handle);
  if (!operations.get()) return nullptr;
  std::vector<CudnnDescriptor> ranked = ranked_engines(operations, graph.plan, CUDNN_HEUR_MODE_A);
  if (const std::string_view wanted = preferred_engine_on(stream.device, graph); !wanted.empty()) {
    const auto build_wanted = [&](const std::vector<CudnnDescriptor>& among) {
      const auto found = std::ranges::find_if(
          among, [&](const CudnnDescriptor& each) { return engine_name(each) == wanted; });
      return found == among.end() ? nullptr : build_plan(*found, handle);
    };
    if (auto made = build_wanted(ranked)) return made;
    if (auto made = build_wanted(ranked_engines(operations, graph.plan, CUDNN_HEUR_MODE_B))) return made;
  }
  for (const CudnnDescriptor& configuration : ranked)
    if (auto made = build_plan(configuration, handle)) return made;
  for (const CudnnDescriptor& configuration :
       ranked_engines(operations, graph.plan, CUDNN_HEUR_MODE_FALLBACK))
    if (auto made = build_plan(configuration, handle)) return made;
  return nullptr;
}

void execute(const ExecutionPlan& plan, std::span<const Operand> operands, StreamView stream) {
  const Buffer workspace(static_cast<std::size_t>(plan.workspace), stream);
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
  cudnn_check(cudnnBackendExecute(cudnn_handle(stream), plan.plan.get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace tandem::detail
