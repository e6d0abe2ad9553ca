// How fit() trains: everything that names neither the data nor the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/augment/mix.h"
#include "tandem/augment/transform.h"
#include "tandem/data/loader/worker_kind.h"
#include "tandem/device/device.h"
#include "tandem/nn/loss.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/normalize.h"
#include "tandem/ops/shard_norm.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/optimizer_options.h"
#include "tandem/optim/schedule.h"
#include "tandem/train/class_weights.h"
#include "tandem/train/decision.h"
#include "tandem/train/test_views.h"

namespace tandem {

/// Where images are augmented; automatic: where training is faster, measured.
enum class AugmentPlace : std::uint8_t { automatic, cpu, gpu };

/// How the features of a frozen backbone are computed; automatic: as the rest of the network.
enum class FeaturePrecision : std::uint8_t { automatic, bf16, int8 };

/// A figure of your own, computed after every epoch on the validation set and shown in the log and the
/// report.
struct Metric {
  std::string name;
  /// outputs (n, classes) in f32 and labels (n) in i64 of the whole validation set, on the CPU.
  std::function<double(const Tensor& outputs, const Tensor& labels)> compute;
};

/// Makes the optimizer of a run from the parameters that require gradients.
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(NamedTensors parameters)>;

/// Options of fit(). fit() throws Error for values out of range, as a configuration file does.
struct FitOptions {
  std::int64_t epochs = 15;
  std::int64_t batch_size = 16;  ///< 0: the one with the highest throughput, measured (find_batch_size())
  bool shuffle = true;           ///< another order in each epoch; false: always the stored order
  /// Draw every class equally often, with shuffle only: an epoch has as many samples as without, those of
  /// rare classes several times.
  bool balanced_sampling = false;
  /// Random batches, with shuffle only. 0: all of the data once, the last batch holding the remainder.
  std::int64_t batches_per_epoch = 0;
  /// Parts of every batch whose gradients are summed in a fixed order. Ranks share them out; the bits of a
  /// run depend on the number of shards, not on the ranks. At most one per image of a batch.
  std::int64_t shards = 1;
  ShardNorm batch_norm = ShardNorm::batch;  ///< what batch norms normalize by, with several shards
  double learning_rate = 0.1;               ///< 0: found by a range test (find_learning_rate())
  std::string optimizer = "sgd";            ///< one of optimizers()
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double clip_norm = 0;  ///< the largest norm of all gradients together (GradientClip); 0: not clipped
  /// Decay of the moving average of the weights (WeightAverage), updated after every step. Validation, the
  /// best model and its file have the averaged weights. 0: none.
  double ema = 0;
  /// Decay of lookahead (LookaheadOptions): every five steps the weights go on from slow ones that follow
  /// them; the run ends with the slow ones. 0: none.
  double lookahead = 0;
  /// Biases of batch norms have this many times the learning rate, with the same decay per step. Requires
  /// optimizer sgd, adam or adamw if it is not 1.
  double norm_bias_lr = 1;
  /// Of a BackboneModel: the last layer has the learning rate, the stage before it this many times that, and
  /// so on to the first stage. Above 0, at most 1. Requires optimizer sgd, adam or adamw.
  double stage_lr_decay = 1;
  /// From this epoch on, counted from 1, all parameters are trained, with a new optimizer. Requires frozen
  /// ones. 0: never.
  std::int64_t unfreeze_at = 0;
  ScheduleKind schedule = ScheduleKind::constant;
  std::int64_t step_size = 7;  ///< epochs between reductions, for ScheduleKind::step
  double gamma = 0.1;          ///< factor of each reduction
  double min_lr = 0;           ///< final learning rate of ScheduleKind::cosine and triangular
  double pct_start = 0.3;      ///< fraction of the run with a rising rate, of one_cycle and triangular
  std::int64_t warmup_steps = 0;
  double warmup_epochs = 0;  ///< added to warmup_steps
  LossKind loss = LossKind::cross_entropy;
  double label_smoothing = 0;
  double focal_gamma = 2;           ///< of LossKind::focal: how little rows count that are classified well
  ClassWeights class_weights = {};  ///< of the training loss; that of the validation set has none
  /// The first epoch fits the last layer to the features of the training images, not augmented, by logistic
  /// regression; the others train as usual. Requires a BackboneModel.
  bool fit_head = false;
  /// After training, a temperature is fitted to the validation images (temperature.h), so that probabilities
  /// tell how often the model is right. Not for LossKind::mse.
  bool calibrate = false;
  /// The views of a test image whose outputs are averaged after the last epoch.
  TestViews test_views = TestViews::one;
  /// The decision threshold of two classes: given, or chosen on the validation images after training.
  ThresholdRequest threshold = {};
  std::int64_t early_stopping = 0;  ///< stop after this many epochs without a better accuracy; 0: never

  Transform transform = {};  ///< of the training images; one that resizes takes images of any size
  /// Of the validation images. None: evaluation_transform() to the size of a `transform` that resizes, else
  /// the images as they are.
  std::optional<Transform> validation_transform = {};
  PixelNorm norm = {};  ///< what the network gets: by default pixels from 0 to 1
  AugmentPlace augment_on = AugmentPlace::automatic;
  double mixup = 0;   ///< blend each image with its neighbor: α of the Beta distribution; 0: off
  double cutmix = 0;  ///< paste a box of the neighbor into each image: α; 0: off
  std::optional<int> workers =
      {};  ///< threads or processes that prepare images; none: chosen, 0: the trainer
  WorkerKind worker_kind = WorkerKind::thread;
  std::int64_t prefetch = 0;   ///< blocks of images prepared ahead of the steps; 0: twice the workers
  double worker_timeout = 60;  ///< seconds without progress after which a worker counts as hung

  std::uint64_t seed = 1;             ///< of the order of samples and of the augmentation
  std::optional<Device> device = {};  ///< none: the faster device, measured
  /// Of matrix products and convolutions. None: TF32 for a network with convolutions on a GPU, else fp32.
  /// TF32 requires a GPU.
  std::optional<MatmulPrecision> precision = {};
  /// Of a BackboneModel that is frozen in all epochs, on the CPU: the last layer is trained over features in
  /// bf16 or, of a ResNet, in 8-bit integers, and batch norms keep their statistics. The result has the
  /// accuracy with features in fp32 too; the weights of the backbone stay as they are.
  FeaturePrecision feature_precision = FeaturePrecision::automatic;
  /// On a GPU, replay steps as captured graphs. Turn it off if forward() or the loss reads values on the host
  /// or does something else in every step.
  bool capture_graphs = true;
  /// Passes that compute the shards of a rank one after the other, and add their gradients: less memory, the
  /// same bits. At most one per shard of a rank. Batch norms must normalize by shards.
  std::int64_t accumulate = 1;
  /// Of ranks on GPUs: sum gradients on the CPU instead of by NCCL. Slower, the same bits.
  bool exchange_through_cpu = false;

  /// Folder for config.toml, log.csv, steps.csv, TensorBoard events, best.safetensors, last.ckpt, data.json
  /// and report.html, locked during the run. Must be empty or new unless the run is resumed. Empty:
  /// `runs/DATA_NAME-MODEL_NAME-NUMBER`.
  std::filesystem::path run_folder = {};
  bool resume = false;                 ///< continue from last.ckpt in run_folder, if it is there
  bool accept_changed_data = false;    ///< resume even if classes or samples differ from the checkpoint's
  bool accept_changed_shards = false;  ///< resume with another number of shards: the same to rounding only
  double save_every_seconds = 60;      ///< between checkpoints within an epoch; 0: after every few steps
  std::filesystem::path trace = {};    ///< file for a timeline in Chrome's trace format; empty: none
  std::string command = {};            ///< shown in the report and stored in the model file
  std::string data_name = "data";      ///< shown in the report and stored in the model file

  LossFunction loss_function = {};  ///< instead of `loss` and its options
  OptimizerFactory make_optimizer =
      {};                             ///< instead of `optimizer` and its options; the schedule sets its rate
  std::vector<Metric> metrics = {};   ///< with distinct names
  std::string model_name = "custom";  ///< stored in the model file: the name given to register_model()

  ScheduleOptions schedule_options() const;
  OptimizerOptions update_options() const;
  /// `validation_transform`, or what stands for it.
  Transform evaluation_transform() const;
  /// What the outputs of the model are, as model files say it: logits, or sigmoids for mse.
  LossKind output_kind() const { return loss == LossKind::mse ? loss : LossKind::cross_entropy; }
  /// Whether any epoch has gradient steps: not if the only one fits the last layer.
  bool has_steps() const { return epochs > 1 || !fit_head; }
  MixRecipe mix_recipe() const { return {.mixup = mixup, .cutmix = cutmix}; }
};

/// Throws Error for values out of range or that cannot be combined. `op` is the tag: "[op] expected …".
void check_fit_options(const FitOptions& options, const char* op = "fit");

}  // namespace tandem
