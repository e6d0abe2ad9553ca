// Reads the folder of a run while the run goes on, and after it: only what was appended, in bounded memory.
// Writes nothing and takes no lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/files/followed_file.h"
#include "tandem/report/curve.h"
#include "tandem/report/epoch_record.h"
#include "tandem/report/number_rows.h"
#include "tandem/report/step_record.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/run_status.h"

namespace tandem {

enum class RunPhase {
  starting,  // nothing was measured yet
  running,
  finished,
  stopped,  // by a signal; it can be resumed
  failed,
  lost,  // its process is gone without having said why
  gone,  // the folder is
};

std::string_view name_of(RunPhase phase);

// What is known about a run. All texts are clean: one line of valid UTF-8 without control characters.
struct WatchedRun {
  std::string name;
  RunPhase phase = RunPhase::starting;
  double changed_at = 0;  // when it last wrote something, in seconds since 1970; 0: never
  std::string data, model;
  std::string batch_size;                                   // as in the configuration; empty: not known
  std::vector<std::pair<std::string, std::string>> config;  // keys and values, in the order of config.toml
  RunStatus status;              // as the run says; counts are 0 where it says nothing
  std::int64_t total_steps = 0;  // of a pretraining, whose epochs do not count

  std::int64_t epochs_done = 0;
  EpochRecord last_epoch, best_epoch;                        // .epoch is 0 before the first
  Curve train_loss, val_loss, train_accuracy, val_accuracy;  // by epoch
  StepRecord last_step;
  StepCurves steps;
  std::int64_t unreadable_rows = 0;

  bool has_ended() const { return phase != RunPhase::starting && phase != RunPhase::running; }
  // From the status, or from the steps of finished epochs; 0: not known.
  std::int64_t steps_per_epoch() const;
  // Of the whole run, from 0 to 1; not_measured if that is not known.
  double done_share() const;
  double seconds_left() const;
};

class RunReader {
 public:
  explicit RunReader(const std::filesystem::path& folder);

  using EpochFunction = std::function<void(const EpochRecord&)>;

  // Reads what is new, a few megabytes at most, and calls `on_epoch` for each new epoch; those of a log that
  // was replaced come again. `now` is in seconds since 1970. Returns whether something changed.
  bool poll(double now, const EpochFunction& on_epoch = {});
  // Whether poll() has more to read at once.
  bool has_more() const { return has_more_; }

  const WatchedRun& run() const { return run_; }
  const std::filesystem::path& folder() const { return folder_.path; }

 private:
  // A small file that is read as a whole when it changes.
  struct WholeFile {
    std::filesystem::path path;
    std::filesystem::file_time_type modified;
    std::uintmax_t size = 0;
    bool exists = false;

    bool has_changed();
    std::string text() const;
  };
  bool poll_log(const EpochFunction& on_epoch);
  bool poll_steps();
  bool poll_config();
  bool poll_status();
  bool take_step(const NumberRows& rows, double samples_per_second);
  bool take_epoch(const NumberRows& rows, const EpochFunction& on_epoch);
  void clear_epochs();
  void clear_steps();
  RunPhase find_phase(double now) const;

  RunFolder folder_;
  FollowedFile log_, steps_;
  WholeFile config_, status_;
  NumberRows log_rows_, step_rows_;
  bool has_status_ = false;
  std::int64_t bad_log_rows_ = 0, bad_step_rows_ = 0;
  bool has_more_ = false;
  WatchedRun run_;
};

// Whether the folder is that of a run, perhaps one that has just been started.
bool is_run_folder(const std::filesystem::path& path);

// The run folders among `paths`; of a folder that is not one, the runs directly below it, newest first, at
// most `max_runs`. Throws Error for a path that is neither.
std::vector<std::filesystem::path> find_runs(std::span<const std::string> paths, std::size_t max_runs);

}  // namespace tandem
