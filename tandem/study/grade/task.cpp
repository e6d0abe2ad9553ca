#include "tandem/study/grade/task.h"

#include "tandem/core/check.h"
#include "tandem/ops/random.h"
#include "tandem/study/grade/task_cases.h"

namespace tandem {

// Written by cmake/TandemEmbed.cmake.
extern const std::string_view embedded_queue_driver_c, embedded_queue_driver_py;

const Registry<GradeTask>& grade_tasks() {
  static const TaskDriver queue_driver{embedded_queue_driver_c, embedded_queue_driver_py, "Queue"};
  static const Registry<GradeTask> rows(
      "task",
      {
          {.name = "max",
           .summary = "max(a, b): the element-wise maximum",
           .cases = "1000x1000 i32",
           .can_be_timed = true,
           .make = make_max_case},
          {.name = "xxt",
           .summary = "xxt(x): x times its transpose",
           .cases = "300x500 f32",
           .can_be_timed = true,
           .make = make_xxt_case},
          {.name = "correlation",
           .summary =
               "correlation(image, kernel): the weighted sum of the neighbors of every pixel, 0 outside",
           .cases = "480x640 f32 3x3",
           .can_be_timed = true,
           .make = make_correlation_case},
          {.name = "batches",
           .summary = "batches(samples, batch_size): first sample and size of every batch, and their number",
           .cases = "1000 batch 16",
           .make = make_batches_case},
          {.name = "xavier",
           .summary = "xavier(fan_in, fan_out, seed): uniform weights within sqrt(6 / (fan_in + fan_out))",
           .cases = "784,200",
           .make = make_xavier_case},
          {.name = "gradients",
           .summary = "gradients(x, y, w1, b1, w2, b2): of the mean cross-entropy of a sigmoid network",
           .cases = "20,12,5 batch 7",
           .make = make_gradients_case},
          {.name = "shift",
           .summary =
               "shift(image, dx, dy): the content moves dx pixels to the left and dy upwards, 0 comes in",
           .cases = "28x28 u8",
           .make = make_shift_case},
          {.name = "skew",
           .summary = "skew(image, tilt): out[y][x] = in[y][x + y * tilt], rounded down, 0 outside",
           .cases = "28x28 u8",
           .make = make_skew_case},
          {.name = "noise",
           .summary =
               "noise(image, amount, seed): adds a uniform value from [-amount, amount], clips to 0 and 1",
           .cases = "28x28 f32",
           .make = make_noise_case},
          {.name = "workers",
           .summary =
               "workers(requested, slurm_cpus_per_task, usable_cpus): the number of workers, at least 2",
           .cases = "requested",
           .make = make_workers_case},
          {.name = "queue",
           .summary = "a queue between processes: many writers, one reader",
           .cases = "8 writers, one killed",
           .driver = &queue_driver,
           .make = make_queue_case},
      });
  return rows;
}

ArrayFormat array_format(DType dtype, std::int64_t rows, std::int64_t columns) {
  return {.dtype = dtype, .rows = rows, .columns = columns};
}

Tensor i64_scalar(std::int64_t value) {
  return Tensor::from(std::vector<std::int64_t>{value}, {1, 1});
}

Tensor f64_scalar(double value) {
  return Tensor::from(std::vector<double>{value}, {1, 1});
}

std::int64_t sample_integer(std::uint64_t seed, std::uint64_t stream, std::int64_t low, std::int64_t high) {
  return random_integers({1}, low, high + 1, {.seed = seed, .stream = stream}).item<std::int64_t>();
}

void check_case_size(const TaskCase& made) {
  double elements = 0;
  for (const auto* list : {&made.format.inputs, &made.format.outputs})
    for (const ArrayFormat& one : *list)
      elements += static_cast<double>(one.rows) * static_cast<double>(one.columns);
  check(elements <= static_cast<double>(max_case_elements),
        "[task {}] expected at most {} elements, got {} in \"{}\"", made.format.function, max_case_elements,
        elements, made.name);
}

}  // namespace tandem
