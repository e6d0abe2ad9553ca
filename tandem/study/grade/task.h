// The tasks of a grading: what a function of a submission computes, on which inputs, and how its results are
// checked. A profile selects tasks and their cases.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/registry.h"
#include "tandem/ops/version.h"
#include "tandem/study/plugin/kernel_process.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// One case of a task, such as "1000x1000 i32". Arrays are tensors of two axes, or three with channels.
struct TaskCase {
  std::string name;
  KernelFormat format;
  // The inputs for a seed; those of two seeds have nothing in common.
  std::function<std::vector<Tensor>(std::uint64_t seed)> inputs;
  // The results, compared within `tolerance` of the largest magnitude of each output. Unused with `check`.
  std::function<std::vector<Tensor>(std::span<const Tensor> inputs)> expected;
  double tolerance = 0;
  // Instead of a comparison, where a result is not unique: what is wrong with the outputs, or nothing. Called
  // for every repetition in order; it may remember earlier ones.
  std::function<std::string(std::span<const Tensor> inputs, std::span<const Tensor> outputs)> check;
  // The computation that is timed for comparison; null for tasks that are not timed.
  std::function<Tensor(std::span<const Tensor> inputs, Version version)> reference;
};

// For a task whose interface is more than one function. The text follows the submission's source.
struct TaskDriver {
  std::string_view c;  // C and C++
  std::string_view python;
  std::string python_import;  // what the submission's module has to define
};

struct GradeTask {
  std::string name;
  std::string summary;  // what the function computes
  std::string cases;    // the grammar of its cases, by example
  bool can_be_timed = false;
  // Code that is put behind the submission's and calls it; such a function starts processes.
  const TaskDriver* driver = nullptr;
  // Throws Error for text that is not a case of the task.
  TaskCase (*make)(const std::string& name) = nullptr;
};

const Registry<GradeTask>& grade_tasks();

}  // namespace tandem
