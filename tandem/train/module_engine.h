// The engine for any model: each step goes through Module::forward, the tape and the fused optimiser. On CUDA
// the first steps are captured as a graph, which is then replayed.
#pragma once

#include <memory>
#include <optional>

#include "tandem/device/graph.h"
#include "tandem/device/stream.h"
#include "tandem/train/engine.h"

namespace tandem {

class ModuleEngine : public Engine {
 public:
  explicit ModuleEngine(const TrainingTask& task);

  StepSums run(std::int64_t epoch, std::int64_t first, std::int64_t count) override;
  void store() override {}  // it works on the model itself
  std::string description() const override;

 private:
  // What depends on the step's number: which samples, which rate.
  void prepare(std::int64_t epoch, std::int64_t step);
  // What is the same in every step of so many rows.
  void compute(std::int64_t rows);
  void compute_captured();  // of a whole batch

  TrainingTask task_;
  Tensor rows_;                   // the images, one a row
  Tensor order_;                  // i32, the samples of the step
  Tensor loss_;                   // f64, summed over samples since run() began
  Tensor correct_;                // i64
  std::optional<Stream> stream_;  // CUDA: the captured step's own, so that nobody else uses its memory
  std::shared_ptr<Graph> graph_;
  int eager_steps_ = 0;
};

}  // namespace tandem
