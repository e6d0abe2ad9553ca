// The engine for any model: each step runs Module::forward, the autograd tape and the optimizer. If
// only the last layer of a network is trained, the features of several steps are computed at once, unless
// batches are cut into shards. Ranks sum their gradients while they are computed (gradient_exchange.h). On
// CUDA steps are captured as graphs, one per number of rows of the whole batch, with what ranks exchange, and
// replayed; an optimizer that is not a fused one runs after the graph.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tandem/device/graph_runner.h"
#include "tandem/device/stream.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/optim/clip_gradients.h"
#include "tandem/train/engines/accumulation.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/engines/gradient_exchange.h"
#include "tandem/train/engines/rank_exchange.h"

namespace tandem {

class ModuleEngine : public Engine {
 public:
  explicit ModuleEngine(const TrainingTask& task);

  void add_steps(std::int64_t epoch, std::int64_t first, std::int64_t count, StepSums& sums) override;
  std::int64_t stride() const override { return stride_; }
  std::int64_t first_not_finite() const override;
  void store() override {}  // it works on the model itself
  std::string description() const override;

 private:
  using GraphRunners = std::map<std::int64_t, GraphRunner>;  // by number of rows

  bool is_sharded() const { return task_.shards() > 1; }
  void join_ranks(Group& group);
  bool captures_graphs() const;
  // The rows of this rank in a batch, or in several batches without shards, of `rows` rows.
  std::int64_t own_rows(std::int64_t rows) const;
  // The part of a batch of `rows` rows that a pass computes.
  ShardPart begin_pass(std::int64_t pass, std::int64_t rows);
  // Where the rows of a part are among those of this rank.
  IndexRange rows_of(const ShardPart& part) const;
  // Copies the images and labels of `rows` local positions, from step `first` on, into images_ and labels_.
  void load(std::int64_t epoch, std::int64_t first, std::int64_t rows);
  void copy_block(const SourceBlock& block, std::int64_t to);
  void copy_mixed_block(const SourceBlock& block, std::int64_t to, std::int64_t epoch, std::int64_t first);
  MixArguments mix_of(std::int64_t epoch, std::int64_t step) const;
  // Selects the rows of one step from those loaded, starting at row `begin`, and sets its hyperparameters.
  void prepare(std::int64_t epoch, std::int64_t step, std::int64_t begin);
  // Runs `work`, on CUDA through a captured graph.
  void run_captured(GraphRunners& runners, std::int64_t rows, void (ModuleEngine::*work)(std::int64_t));
  // Device work that is the same for all steps with the same number of rows, which are those of the whole
  // batch on all ranks.
  Tensor network_images(IndexRange rows) const;
  void compute_features(std::int64_t rows);
  void compute_step(std::int64_t rows);
  void compute_pass(const ShardPart& part);
  // What the weighted loss of a batch of `rows` rows is divided by, on the device; undefined without class
  // weights.
  Tensor total_weight(std::int64_t rows) const;
  void count_finite_step();
  // The rows of one step.
  struct StepRows {
    Tensor outputs, labels, mixed_labels;

    StepRows slice(std::int64_t begin, std::int64_t end) const;
  };
  Tensor loss_of(const StepRows& step) const;
  Tensor loss_sum(const StepRows& step, const Tensor& loss, const ShardPart& part) const;
  void backpropagate(const Tensor& loss);
  void update();
  void update_average();
  void look_ahead(std::int64_t epoch, std::int64_t step);
  // For an optimizer that is not a fused one: the end of compute_step(), and the update after it.
  void keep_gradients();
  void step_own_optimizer();

  TrainingTask task_;
  BackboneModel* frozen_ = nullptr;  // the model, if only its last layer is trained
  std::int64_t stride_ = 1;
  Tensor images_, labels_;  // of `stride_` steps: u8, one image per row; i32
  Tensor mixed_labels_;     // mixup and cutmix: the labels of the images mixed in
  Tensor features_;         // of a frozen backbone
  struct {
    Tensor features, labels, mixed_labels;
  } step_;               // the rows of one step, if the backbone is frozen
  Tensor label_weight_;  // f32: weight of labels_; mixed_labels_ have the rest
  Tensor total_weight_;  // of the current step
  Tensor loss_;          // f64, summed over samples, continued from call to call
  Tensor correct_;       // i64
  Tensor finite_steps_;  // i64, of several ranks: steps with a finite loss
  struct KeptGradient {
    Tensor buffer;
    bool used;
  };
  std::vector<KeptGradient> kept_gradients_;  // CUDA, for an optimizer that is not fused: one per parameter
  std::optional<NcclGroup> nccl_;             // CUDA, with other ranks; lives longer than the graphs
  FirstNotFinite not_finite_;                 // of what gather_ exchanges
  GatherShards gather_;                       // of other ranks
  std::optional<Accumulation> accumulation_;  // with several passes
  std::optional<GradientExchange> exchange_;  // with other ranks
  std::optional<GradientClip> clip_;
  std::optional<Stream> stream_;  // CUDA: all steps are ordered on it
  GraphRunners feature_runners_, step_runners_;
};

}  // namespace tandem
