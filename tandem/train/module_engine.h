// The engine for any model: each step goes through Module::forward, the tape and the fused optimiser.
#pragma once

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

  TrainingTask task_;
  Tensor rows_;     // the images, one a row
  Tensor order_;    // i32, the samples of the step
  Tensor loss_;     // f64, summed over samples since run() began
  Tensor correct_;  // i64
};

}  // namespace tandem
