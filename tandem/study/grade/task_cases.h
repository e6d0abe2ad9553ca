// The makers of the tasks' cases, and what they share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tandem/study/grade/task.h"

namespace tandem {

ArrayFormat array_format(DType dtype, std::int64_t rows, std::int64_t columns);
inline ArrayFormat scalar_format(DType dtype) {
  return array_format(dtype, 1, 1);
}

// 1×1 arrays.
Tensor i64_scalar(std::int64_t value);
Tensor f64_scalar(double value);

// A whole number in [low, high], from one of the independent streams of a seed.
std::int64_t sample_integer(std::uint64_t seed, std::uint64_t stream, std::int64_t low, std::int64_t high);

// Throws Error when the arrays of a case have more than `max_case_elements` elements.
inline constexpr std::int64_t max_case_elements = std::int64_t{1} << 27;
void check_case_size(const TaskCase& made);

TaskCase make_max_case(const std::string& name);
TaskCase make_xxt_case(const std::string& name);
TaskCase make_correlation_case(const std::string& name);

TaskCase make_batches_case(const std::string& name);
TaskCase make_xavier_case(const std::string& name);
TaskCase make_gradients_case(const std::string& name);

TaskCase make_shift_case(const std::string& name);
TaskCase make_skew_case(const std::string& name);
TaskCase make_noise_case(const std::string& name);
TaskCase make_workers_case(const std::string& name);

TaskCase make_queue_case(const std::string& name);

}  // namespace tandem
