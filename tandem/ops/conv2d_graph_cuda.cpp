#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/device/buffer.h"
#include "tandem/device/cuda.h"
#include "tandem/device/cuda_dnn.h"
#include "tandem/ops/conv2d_fold.cuh"
#include "tandem/ops/conv2d_graph.cuh"

namespace tandem {
namespace {

// Names of the operands in a graph.
enum Uid : std::int64_t {
  uid_x = 1,
  uid_weight,
  uid_y,
  uid_bias,
  uid_residual,
  uid_sum,
  uid_biased,
  uid_added
};

cudnnDataType_t data_type(DType dtype) {
  return dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

struct ExecutionPlan {
  DnnDescriptor plan;
  std::int64_t workspace = 0;
};

// A tensor in cuDNN's order of axes (N, C, H, W), which lies as (N, H, W, C).
DnnDescriptor tensor(Uid uid, std::array<std::int64_t, 4> dims, cudnnDataType_t type, bool inner = false) {
  const auto [n, c, h, w] = dims;
  const std::array<std::int64_t, 4> strides{c * h * w, 1, w * c, c};
  DnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{uid});
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  if (inner) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  made.finalize();
  return made;
}

DnnDescriptor geometry(const Window& window) {
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const auto pair = [](YX of) { return std::array<std::int64_t, 2>{of.y, of.x}; };
  DnnDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
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

DnnDescriptor pointwise(cudnnPointwiseMode_t mode, const DnnDescriptor& x, const DnnDescriptor* b,
                        const DnnDescriptor& y) {
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  DnnDescriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
  kind.finalize();
  DnnDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  made.finalize();
  return made;
}

// Everything that is part of the graph, kept alive until it is built.
class GraphBuilder {
 public:
  explicit GraphBuilder(const ConvRequest& request)
      : request_(request), window_(geometry(request.plan.window)) {
    const Conv2dPlan& plan = request.plan;
    const cudnnDataType_t type = data_type(plan.dtype);
    x_ = tensor(uid_x, {plan.images, plan.channels, plan.in.y, plan.in.x}, type);
    weight_ =
        tensor(uid_weight, {plan.filters, plan.channels / plan.groups, plan.kernel.y, plan.kernel.x}, type);
    y_ = of_y(uid_y, type);
    switch (request.pass) {
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

  DnnDescriptor finish(cudnnHandle_t handle) const {
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const DnnDescriptor& operation : operations_) handles.push_back(operation.get());
    DnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<std::int64_t>(handles.size()), handles.data());
    if (!graph.try_finalize()) return {};
    return graph;
  }

 private:
  struct Names {
    cudnnBackendAttributeName_t x, weight, y, window, alpha, beta;
  };

  DnnDescriptor of_y(Uid uid, cudnnDataType_t type, bool inner = false) const {
    const Conv2dPlan& plan = request_.plan;
    return tensor(uid, {plan.images, plan.filters, plan.out.y, plan.out.x}, type, inner);
  }

  void add_convolution(cudnnBackendDescriptorType_t type, const Names& names, const DnnDescriptor& y) {
    DnnDescriptor made(type);
    made.set(names.x, x_);
    made.set(names.weight, weight_);
    made.set(names.y, y);
    made.set(names.window, window_);
    made.set(names.alpha, 1.0f);
    made.set(names.beta, 0.0f);
    made.finalize();
    operations_.push_back(std::move(made));
  }

  // Sums in between stay f32 in registers.
  void forward() {
    std::vector<std::pair<cudnnPointwiseMode_t, Uid>> steps;
    if (request_.bias) steps.push_back({CUDNN_POINTWISE_ADD, uid_bias});
    if (request_.residual) steps.push_back({CUDNN_POINTWISE_ADD, uid_residual});
    if (request_.relu) steps.push_back({CUDNN_POINTWISE_RELU_FWD, uid_y});
    constexpr Uid between[] = {uid_sum, uid_biased, uid_added};
    inner_.reserve(std::size(between));
    const DnnDescriptor* current = steps.empty() ? &y_ : next_inner(uid_sum);
    add_convolution(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        *current);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto [mode, uid] = steps[i];
      if (uid == uid_bias) second_ = tensor(uid, {1, request_.plan.filters, 1, 1}, CUDNN_DATA_FLOAT);
      if (uid == uid_residual) third_ = of_y(uid, data_type(request_.plan.dtype));
      const DnnDescriptor* operand = uid == uid_bias ? &second_ : uid == uid_residual ? &third_ : nullptr;
      const DnnDescriptor* to = i + 1 == steps.size() ? &y_ : next_inner(between[i + 1]);
      operations_.push_back(pointwise(mode, *current, operand, *to));
      current = to;
    }
  }

  const DnnDescriptor* next_inner(Uid uid) {
    inner_.push_back(of_y(uid, CUDNN_DATA_FLOAT, true));
    return &inner_.back();
  }

  ConvRequest request_;
  DnnDescriptor window_, x_, weight_, y_, second_, third_;
  std::vector<DnnDescriptor> inner_, operations_;
};

bool has_note(const DnnDescriptor& engine, cudnnBackendNumericalNote_t wanted) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes;
  std::int64_t count = 0;
  cudnn_check(
      cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               static_cast<std::int64_t>(notes.size()), &count, notes.data()),
      "cudnnBackendGetAttribute");
  return std::find(notes.begin(), notes.begin() + count, wanted) != notes.begin() + count;
}

// No atomics, and no rounding of factors that was not asked for.
bool may_use(const DnnDescriptor& configuration, const Conv2dPlan& plan) {
  DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  cudnn_check(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                       const_cast<cudnnBackendDescriptor_t*>(&handle)),
              "cudnnBackendGetAttribute");
  if (has_note(engine, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (plan.dtype == DType::f32 && plan.precision == MatmulPrecision::fp32)
    return !has_note(engine, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
           !has_note(engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return true;
}

std::vector<DnnDescriptor> ranked_configurations(const DnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  DnnDescriptor ranking(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  ranking.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  ranking.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!ranking.try_finalize()) return {};
  std::int64_t count = 0;
  cudnn_check(cudnnBackendGetAttribute(ranking.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "cudnnBackendGetAttribute");
  std::vector<DnnDescriptor> configurations;
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

// Memory a plan may ask for beside its operands.
constexpr std::int64_t most_workspace = std::int64_t{4} << 30;

std::unique_ptr<ExecutionPlan> build(const ConvRequest& request, cudnnHandle_t handle) {
  const DnnDescriptor graph = GraphBuilder(request).finish(handle);
  if (!graph.get()) return nullptr;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const DnnDescriptor& configuration : ranked_configurations(graph, mode)) {
      if (!may_use(configuration, request.plan)) continue;
      auto made = std::make_unique<ExecutionPlan>();
      made->plan = DnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
      made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (!made->plan.try_finalize()) continue;
      std::int64_t count = 0;
      cudnn_check(cudnnBackendGetAttribute(made->plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &count, &made->workspace),
                  "cudnnBackendGetAttribute");
      if (made->workspace <= most_workspace) return made;
    }
  }
  return nullptr;
}

std::vector<std::int64_t> key_of(const ConvRequest& request, Device device) {
  const Conv2dPlan& p = request.plan;
  const Window& w = p.window;
  return {device.index,
          p.images,
          p.channels,
          p.filters,
          p.groups,
          p.in.y,
          p.in.x,
          p.kernel.y,
          p.kernel.x,
          w.stride.y,
          w.stride.x,
          w.padding.y,
          w.padding.x,
          w.dilation.y,
          w.dilation.x,
          std::int64_t(p.dtype),
          std::int64_t(p.precision),
          std::int64_t(request.pass),
          request.bias,
          request.residual,
          request.relu};
}

bool execute(const ConvRequest& request, const ConvOperands& operands, StreamView stream) {
  const cudnnHandle_t handle = cudnn_handle(stream);
  thread_local std::map<std::vector<std::int64_t>, std::unique_ptr<ExecutionPlan>>
      plans;  // as handles: a thread's own
  const auto [found, fresh] = plans.try_emplace(key_of(request, stream.device));
  if (fresh) found->second = build(request, handle);
  const ExecutionPlan* plan = found->second.get();
  if (!plan) return false;

  const Buffer workspace(static_cast<std::size_t>(plan->workspace), stream);
  std::vector<std::int64_t> uids;
  std::vector<const void*> pointers;
  const auto add = [&](Uid uid, const std::byte* pointer) {
    if (!pointer) return;
    uids.push_back(uid);
    pointers.push_back(pointer);
  };
  add(uid_x, operands.x);
  add(uid_weight, operands.weight);
  add(uid_y, operands.y);
  add(uid_bias, operands.bias);
  add(uid_residual, operands.residual);
  const void* const scratch = workspace.data();
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<std::int64_t>(pointers.size()), pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
  pack.finalize();
  cudnn_check(cudnnBackendExecute(handle, plan->plan.get(), pack.get()), "cudnnBackendExecute");
  return true;
}

}  // namespace

bool run_convolution(const ConvRequest& request, const ConvOperands& operands, StreamView stream) {
  const Conv2dPlan& plan = request.plan;
  if (plan.dtype == DType::f64) return false;
  const bool of_weight = request.pass == ConvPass::weight_gradient;
  const bool folds = request.pass != ConvPass::input_gradient && wants_folding(plan);
  if (!folds && !(of_weight && plan.dtype == DType::bf16)) return execute(request, operands, stream);

  ConvRequest own_request = request;
  ConvOperands own = operands;
  const Folding folding = folds ? fold(plan) : Folding{.plan = plan, .from = plan};
  own_request.plan = folding.plan;
  const Conv2dSizes sizes = sizes_of(folding.plan);
  const std::size_t element = size_of(plan.dtype);
  const Buffer x(folds ? static_cast<std::size_t>(sizes.x) * element : 0, stream);
  const Buffer weight(static_cast<std::size_t>(sizes.weight) * element, stream);
  own.weight = weight.data();
  if (folds) {
    own.x = x.data();
    fold_images(folding, x.data(), operands.x, stream);
    if (!of_weight) fold_weight(folding, weight.data(), operands.weight, stream);
  }
  if (!execute(own_request, own, stream)) return false;
  if (of_weight) unfold_weight(folding, const_cast<std::byte*>(operands.weight), weight.data(), stream);
  return true;
}

}  // namespace tandem
