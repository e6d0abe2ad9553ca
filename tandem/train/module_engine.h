// The engine for any model: each step goes through Module::forward, the tape and the fused optimiser. Where
// only the last layer of a network is trained, the features of several steps are computed at once. On CUDA
// steps are captured as graphs, one for each number of rows, which are then replayed.
#pragma once

#include <map>
#include <optional>

#include "tandem/device/repeated_work.h"
#include "tandem/device/stream.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/train/engine.h"

namespace tandem {

class ModuleEngine : public Engine {
 public:
  explicit ModuleEngine(const TrainingTask& task);

  StepSums run(std::int64_t epoch, std::int64_t first, std::int64_t count) override;
  std::int64_t stride() const override { return stride_; }
  void store() override {}  // it works on the model itself
  std::string description() const override;

 private:
  using Works = std::map<std::int64_t, RepeatedWork>;  // by rows

  // Brings the images and labels of `rows` positions from step `first` on.
  void load(std::int64_t epoch, std::int64_t first, std::int64_t rows);
  void bring(const SourceBlock& block, std::int64_t to);
  void bring_mixed(const SourceBlock& block, std::int64_t to, std::int64_t epoch, std::int64_t first);
  MixDraw mix_of(std::int64_t epoch, std::int64_t step) const;
  // What one step needs of what was loaded, from row `at` on.
  void prepare(std::int64_t epoch, std::int64_t step, std::int64_t at);
  void repeat(Works& works, std::int64_t rows, void (ModuleEngine::*work)(std::int64_t));
  // What is the same for every so many rows.
  Tensor network_images(std::int64_t rows) const;
  void compute_features(std::int64_t rows);
  void compute_step(std::int64_t rows);

  TrainingTask task_;
  BackboneModel* frozen_ = nullptr;  // the model, where only its last layer is trained
  std::int64_t stride_ = 1;
  Tensor images_, labels_;  // of `stride_` steps: u8, an image a row; i32
  Tensor others_;           // where images are mixed: the labels of what is mixed in
  Tensor features_;         // where the backbone is frozen
  struct {
    Tensor features, labels, others;
  } step_;                        // one step's, where there can be several
  Tensor share_;                  // f32, the weight of the labels; the others have the rest
  Tensor loss_;                   // f64, summed over samples since run() began
  Tensor correct_;                // i64
  std::optional<Stream> stream_;  // CUDA: all steps are ordered on it
  Works feature_works_, step_works_;
};

}  // namespace tandem
