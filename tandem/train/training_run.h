// The training loop of train() and fit(): steps, validation after each epoch, checkpoints, run folder,
// report. CheckpointPolicy decides when to save, RunLog writes what people read. Of several ranks, all run
// the loop, and the first one alone reads and writes files and calls the callbacks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/report/calibration.h"
#include "tandem/train/checkpoint_policy.h"
#include "tandem/train/data_list.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/fit.h"
#include "tandem/train/low_precision_features.h"
#include "tandem/train/rank_trace.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/run_log.h"
#include "tandem/train/run_setup.h"
#include "tandem/train/system_monitor.h"
#include "tandem/train/timed_group.h"
#include "tandem/train/training_state.h"

namespace tandem {

class TrainingRun {
 public:
  // The model is trained in place. The model and the callbacks must outlive the run.
  TrainingRun(RunSetup setup, Module& model, const FitCallbacks& callbacks);

  TrainResult run();
  // With what was measured.
  const FitOptions& options() const { return options_; }
  // Of the kept model on the test images, after a run that was not stopped.
  const Evaluation& tested() const { return best_evaluation_.value(); }

 private:
  bool is_first() const { return group_.place().rank == 0; }
  void prepare();
  void measure_options();
  void choose_device();
  void check_feature_precision();
  void compute_features_in_low_precision();
  void make_state();
  void unfreeze();
  void open_folder();
  void write_setup(const TomlTable& config);
  void write_batch_sheet() noexcept;
  void resume(const TomlTable& config);
  TomlTable with_accepted_shards(TomlTable config, const TensorFile& checkpoint);
  bool is_data_changed(const TensorFile& checkpoint) const;
  void restart_epoch();
  CheckpointTexts checkpoint_texts() const;
  std::string engine_description();
  TrainResult run_epochs();
  void compute_head_features();
  void cross_validate_head();
  std::vector<double> head_weights() const;
  void run_head_epoch();
  int run_epoch();
  void run_chunk(std::int64_t steps);
  double learning_rate() const;
  void log_steps();
  void save();
  void add_exchange_time();
  void store_finite();
  [[noreturn]] void fail_diverged(const std::string& where);
  void finish_epoch();
  void swap_average();
  TrainResult finish();
  TrainResult make_result(int signal) const;
  Evaluation validate();
  Evaluation evaluate_best();
  Evaluation evaluate_test_images();
  Evaluation evaluate_in_fp32();
  void compare_with_fp32(TrainResult& result, const Evaluation& tested);
  Evaluation fit_decision(const Evaluation& tested);
  Evaluation traced_evaluation(const std::function<Evaluation()>& compute);
  const EpochRecord* kept_epoch() const;
  void write_report(const TrainResult& result, const Evaluation* tested);
  void write_checkpoint();
  void write_status(RunState state, const TrainResult* result = nullptr, const std::string& message = {});
  void write_failure(const std::string& message) noexcept;
  void warn(const std::vector<std::string>& warnings);
  void list_bad_images();
  bool should_stop_early() const;
  double elapsed_seconds() const { return seconds_before_ + run_watch_.elapsed_ms() / 1000; }
  const BatchPlan& batches() const { return state_->task().batches(); }
  void log(const std::string& line) const;
  void report(const ProgressState& state) const;
  void end_span();
  void write_trace();

  RunSetup setup_;  // its timeline outlives the image source
  FitOptions& options_ = setup_.options;
  TrainingData& data_ = setup_.data;
  Module& model_;
  const FitCallbacks& callbacks_;
  const std::unique_ptr<Group> alone_;
  const std::unique_ptr<TimedGroup> timed_;  // null for a single process
  Group& group_;
  ClockOffset clock_offset_;  // for the trace
  Device first_device_;       // of the first rank, as the configuration has it
  RunFolder folder_;
  std::optional<FolderLock> lock_;     // on the folder, for the whole run
  std::vector<double> class_weights_;  // empty without
  DataList data_list_;
  std::string data_digest_;
  RunPosition position_;
  std::optional<TrainingState> state_;
  std::optional<Evaluator> evaluator_;  // on the validation set
  std::optional<CheckpointPolicy> checkpoints_;
  std::optional<LowPrecisionFeatures> low_precision_;
  std::optional<HeadFeatures> head_features_;    // of the training images
  double head_seconds_ = 0;                      // that they took
  std::optional<RunLog> run_log_;                // of the first rank
  std::optional<SystemMonitor> system_monitor_;  // with the log
  std::int64_t chunk_steps_ = 1;
  std::int64_t session_samples_ = 0;  // since the start or resume
  double session_seconds_ = 0;        // training time since then
  struct {                            // since the last row of steps.csv
    StepSums sums_before;
    double seconds = 0, waited_seconds = 0;
  } unlogged_;
  double own_exchange_seconds_ = 0;  // of this rank, since add_exchange_time()
  double seconds_before_ = 0;        // duration of the run before it was resumed
  Stopwatch run_watch_;              // since the start or resume
  std::optional<RangeTest> range_test_;
  std::optional<Calibration> calibration_;
  std::vector<std::string> warnings_;
  std::string not_read_;  // how many files were not read, and where they are listed
  Stopwatch since_report_;
  double report_ms_ = -1;  // duration of the last writing of report.html
  // The kept epoch's evaluation, if the validation set is also the test set; it saves evaluating again. Empty
  // if that epoch was before a resume.
  std::optional<Evaluation> best_evaluation_;
};

}  // namespace tandem
