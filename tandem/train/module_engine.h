// The engine for any model: each step goes through Module::forward, the tape and the fused optimiser. On CUDA
// steps are captured as graphs, one for each number of rows, which are then replayed.
#pragma once

#include <map>
#include <optional>

#include "tandem/device/repeated_work.h"
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
  // What depends on the step's number: its rate, and its images, which begin at `position` of the block.
  void prepare(std::int64_t epoch, std::int64_t step, const SourceBlock& block, std::int64_t position);
  // What is the same in every step of so many rows.
  void compute(std::int64_t rows);
  void compute_repeatedly(std::int64_t rows);

  TrainingTask task_;
  Tensor images_, labels_;                      // of the step: u8, an image a row; i32
  Tensor loss_;                                 // f64, summed over samples since run() began
  Tensor correct_;                              // i64
  std::optional<Stream> stream_;                // CUDA: all steps are ordered on it
  std::map<std::int64_t, RepeatedWork> steps_;  // by rows: whole batches, and what is left at an epoch's end
};

}  // namespace tandem
