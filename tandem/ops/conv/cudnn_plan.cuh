// Execution plans of cuDNN convolutions: the operation graph, the engines that cuDNN's heuristic ranks for
// it, and a plan with one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/device/cuda_dnn.h"
#include "tandem/ops/conv/conv_graph.h"

namespace tandem::detail {

// Ids of the operands in a graph.
enum Uid : std::int64_t {
  uid_x = 1,
  uid_weight,
  uid_y,
  uid_bias,
  uid_residual,
  uid_sum,  // the following ones are intermediate results
  uid_second,
  uid_third
};

// Empty where cuDNN does not support the graph.
CudnnDescriptor operation_graph(const ConvGraph& graph, cudnnHandle_t handle);

// Engine configurations for `operations`, best first. Deterministic ones only, and none that rounds f32
// inputs when full f32 is required.
std::vector<CudnnDescriptor> ranked_engines(const CudnnDescriptor& operations, const Conv2dPlan& plan,
                                            cudnnBackendHeurMode_t mode);

// The engine and its knobs by cuDNN's numbers, for example "eng41_k2=11_k14=4", in the order of the knobs.
std::string engine_name(const CudnnDescriptor& configuration);

struct ExecutionPlan {
  CudnnDescriptor plan;
  std::int64_t workspace = 0;
};

// Null where cuDNN cannot build it or it needs more than 4 GiB of workspace.
std::unique_ptr<ExecutionPlan> build_plan(const CudnnDescriptor& configuration, cudnnHandle_t handle);

// With the engine of cudnn_plan_table.h if it is among the ranked ones, else with the first one that can be
// built. Null where there is none.
std::unique_ptr<ExecutionPlan> build_plan(const ConvGraph& graph, StreamView stream);

// cuDNN takes operands as untyped pointers. Operands that are null are skipped.
struct Operand {
  Uid uid;
  const void* pointer;
};
void execute(const ExecutionPlan& plan, std::span<const Operand> operands, StreamView stream);

}  // namespace tandem::detail
