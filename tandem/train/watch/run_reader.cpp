#include "tandem/train/watch/run_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/folder_lock.h"
#include "tandem/files/read_file.h"
#include "tandem/files/toml.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_file_bytes = 1 << 20;  // of config.toml and status.json
constexpr std::size_t max_text = 2000, max_warnings = 100;

// One clean line of bounded length.
std::string clean(std::string_view text) {
  return one_line(text.substr(0, max_text));
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string text_of(const TomlTable& table, std::string_view key) {
  const TomlEntry* const entry = table.find(key);
  return entry ? clean(plain_text(entry->value)) : std::string();
}

std::int64_t count_of(const TomlTable& table, std::string_view key) {
  return std::max<std::int64_t>(parse_number<std::int64_t>(text_of(table, key)).value_or(0), 0);
}

bool is_better(const EpochRecord& record, const EpochRecord& best) {
  if (best.epoch == 0) return true;
  if (std::isfinite(record.val_accuracy) || std::isfinite(best.val_accuracy))
    return record.val_accuracy > best.val_accuracy || !std::isfinite(best.val_accuracy);
  return record.val_loss < best.val_loss || !std::isfinite(best.val_loss);
}

}  // namespace

std::string_view name_of(RunPhase phase) {
  constexpr std::array<std::string_view, 7> names{"starting", "running", "finished", "stopped",
                                                  "failed",   "lost",    "gone"};
  return names[static_cast<std::size_t>(phase)];
}

std::int64_t WatchedRun::steps_per_epoch() const {
  if (status.steps_per_epoch > 0) return status.steps_per_epoch;
  return epochs_done > 0 && last_step.epoch == epochs_done ? last_step.step / epochs_done : 0;
}

double WatchedRun::done_share() const {
  if (phase == RunPhase::finished) return 1;
  const auto per_epoch = static_cast<double>(steps_per_epoch());
  const double all =
      total_steps > 0 ? static_cast<double>(total_steps) : static_cast<double>(status.epochs) * per_epoch;
  if (all == 0) return not_measured;
  const double done =
      std::max(static_cast<double>(last_step.step), static_cast<double>(epochs_done) * per_epoch);
  return std::clamp(done / all, 0.0, 1.0);
}

double WatchedRun::seconds_left() const {
  if (phase != RunPhase::running || status.samples_per_epoch == 0) return not_measured;
  const auto samples = static_cast<double>(status.epochs) * static_cast<double>(status.samples_per_epoch);
  return (1 - done_share()) * samples / last_step.samples_per_second;
}

RunReader::RunReader(const fs::path& folder)
    : folder_{folder},
      log_(folder_.log()),
      steps_(folder_.steps()),
      config_{.path = folder_.config(), .modified = {}},
      status_{.path = folder_.status(), .modified = {}} {
  run_.name = clean(folder.string());
}

bool RunReader::poll(double now, const EpochFunction& on_epoch) {
  has_more_ = false;
  bool changed = poll_config();
  changed |= poll_status();
  changed |= poll_log(on_epoch);
  changed |= poll_steps();
  run_.unreadable_rows = bad_log_rows_ + bad_step_rows_;
  run_.changed_at = std::max(run_.changed_at, std::max(log_.modified_at(), steps_.modified_at()));
  const RunPhase phase = find_phase(now);
  changed |= phase != run_.phase;
  run_.phase = phase;
  return changed;
}

// ---- the small files

bool RunReader::WholeFile::has_changed() {
  std::error_code error;
  const bool is_there = fs::is_regular_file(path, error);
  const fs::file_time_type time = is_there ? fs::last_write_time(path, error) : fs::file_time_type{};
  const std::uintmax_t bytes = is_there ? fs::file_size(path, error) : 0;
  const bool changed = is_there != exists || time != modified || bytes != size;
  exists = is_there;
  modified = time;
  size = bytes;
  return changed;
}

// Empty if it cannot be read.
std::string RunReader::WholeFile::text() const {
  try {
    return read_file("watch", path, max_file_bytes);
  } catch (const Error&) {
    return {};
  }
}

bool RunReader::poll_config() {
  if (!config_.has_changed() || !config_.exists) return false;
  try {
    const TomlTable table = parse_toml(config_.text(), "config.toml");
    run_.config.clear();
    for (const TomlEntry& entry : table.entries)
      run_.config.emplace_back(clean(entry.key), clean(plain_text(entry.value)));
    run_.data = text_of(table, "data");
    run_.model = text_of(table, "model");
    run_.batch_size = text_of(table, "batch_size");
    run_.total_steps = count_of(table, "steps");
    if (has_status_) return true;
    run_.status.epochs = count_of(table, "epochs");
    run_.status.device = text_of(table, "device");
  } catch (const Error&) {  // not a configuration, or not yet: the run is shown without it
  }
  return true;
}

bool RunReader::poll_status() {
  if (!status_.has_changed() || !status_.exists) return false;
  std::optional<RunStatus> status = parse_run_status(status_.text());
  if (!status) return false;
  for (std::string* text :
       {&status->message, &status->device, &status->engine, &status->validated_on, &status->tested_on})
    *text = clean(*text);
  const std::size_t extra = status->warnings.size() - std::min(status->warnings.size(), max_warnings);
  status->warnings.erase(status->warnings.begin(),
                         status->warnings.begin() + static_cast<std::ptrdiff_t>(extra));
  for (std::string& warning : status->warnings) warning = clean(warning);
  run_.status = std::move(*status);
  has_status_ = true;
  return true;
}

// ---- the logs

void RunReader::clear_epochs() {
  run_.epochs_done = 0;
  run_.last_epoch = run_.best_epoch = {};
  run_.train_loss = run_.val_loss = run_.train_accuracy = run_.val_accuracy = Curve();
}

void RunReader::clear_steps() {
  run_.last_step = {};
  run_.steps = StepCurves();
}

// The log of a pretraining has a row per step in place of epochs.
bool RunReader::poll_log(const EpochFunction& on_epoch) {
  const auto on_restart = [&] {
    clear_epochs();
    if (!log_rows_.columns.empty() && log_rows_.columns.front() == "step") clear_steps();
    log_rows_ = {};
    bad_log_rows_ = 0;
  };
  const auto on_line = [&](std::string_view line) {
    const bool is_header = log_rows_.columns.empty();
    const bool is_row = log_rows_.set(line);
    if (is_header) return;
    const bool has_steps = log_rows_.columns.front() == "step";
    const bool taken = is_row && (has_steps ? take_step(log_rows_, log_rows_.at("views_per_second"))
                                            : take_epoch(log_rows_, on_epoch));
    bad_log_rows_ += taken ? 0 : 1;
  };
  const FollowedFile::Poll poll = log_.poll(on_restart, on_line);
  has_more_ = has_more_ || poll.more;
  return poll.changed;
}

bool RunReader::poll_steps() {
  const auto on_restart = [&] {
    clear_steps();
    step_rows_ = {};
    bad_step_rows_ = 0;
  };
  const auto on_line = [&](std::string_view line) {
    const bool is_header = step_rows_.columns.empty();
    const bool is_row = step_rows_.set(line);
    if (is_header) return;
    const bool taken = is_row && take_step(step_rows_, not_measured);
    bad_step_rows_ += taken ? 0 : 1;
  };
  const FollowedFile::Poll poll = steps_.poll(on_restart, on_line);
  has_more_ = has_more_ || poll.more;
  return poll.changed;
}

// False for a row that does not come after the others.
bool RunReader::take_step(const NumberRows& rows, double samples_per_second) {
  if (rows.whole_at("step") <= run_.last_step.step) return false;
  run_.last_step = step_record(rows);
  if (std::isfinite(samples_per_second)) run_.last_step.samples_per_second = samples_per_second;
  run_.steps.add(run_.last_step);
  return true;
}

bool RunReader::take_epoch(const NumberRows& rows, const EpochFunction& on_epoch) {
  constexpr std::size_t max_metrics = 100;
  constexpr std::array<std::string_view, 10> known{
      "epoch",         "train_loss", "train_accuracy",     "val_loss",       "val_accuracy",
      "learning_rate", "seconds",    "samples_per_second", "waited_seconds", "exchange_seconds"};
  const std::int64_t epoch = rows.whole_at("epoch");
  if (epoch <= run_.epochs_done || epoch > std::numeric_limits<int>::max()) return false;
  EpochRecord record{.epoch = static_cast<int>(epoch),
                     .train_loss = rows.at("train_loss"),
                     .train_accuracy = rows.at("train_accuracy"),
                     .val_loss = rows.at("val_loss"),
                     .val_accuracy = rows.at("val_accuracy"),
                     .learning_rate = rows.at("learning_rate"),
                     .seconds = rows.at("seconds"),
                     .samples_per_second = rows.at("samples_per_second"),
                     .waited_seconds = rows.at("waited_seconds"),
                     .exchange_seconds = rows.at("exchange_seconds")};
  for (std::size_t i = 0; i < rows.columns.size() && record.metrics.size() < max_metrics; ++i)
    if (std::ranges::find(known, rows.columns[i]) == known.end())
      record.metrics.push_back({rows.columns[i], rows.values[i]});
  run_.epochs_done = epoch;
  const auto x = static_cast<double>(epoch);
  run_.train_loss.add(x, record.train_loss);
  run_.val_loss.add(x, record.val_loss);
  run_.train_accuracy.add(x, record.train_accuracy);
  run_.val_accuracy.add(x, record.val_accuracy);
  if (is_better(record, run_.best_epoch)) run_.best_epoch = record;
  run_.last_epoch = record;
  if (on_epoch) on_epoch(record);
  return true;
}

// ---- whether it goes on

// A process on another host cannot be seen: its run goes on until it says that it has ended.
RunPhase RunReader::find_phase(double now) const {
  std::error_code error;
  if (!fs::is_directory(folder_.path, error)) return RunPhase::gone;
  constexpr double recent_s = 10;  // a process in a container has another number there
  const std::optional<LockHolder> holder = last_lock_holder(folder_.path);
  const bool is_dead = holder ? holder->is_here && !is_alive(*holder, folder_.path) : !has_status_;
  if (has_status_ && run_.status.state != RunState::running)
    return run_.status.state == RunState::finished  ? RunPhase::finished
           : run_.status.state == RunState::stopped ? RunPhase::stopped
                                                    : RunPhase::failed;
  if (is_dead && now - run_.changed_at > recent_s)
    return !has_status_ && (is_file(folder_.report_json()) || is_file(folder_.report())) ? RunPhase::finished
                                                                                         : RunPhase::lost;
  return run_.epochs_done > 0 || run_.last_step.step > 0 ? RunPhase::running : RunPhase::starting;
}

// ---- where runs are

bool is_run_folder(const fs::path& path) {
  const RunFolder folder{path};
  return is_file(folder.log()) || is_file(folder.steps()) || is_file(folder.config()) ||
         is_file(path / ".lock");
}

std::vector<fs::path> find_runs(std::span<const std::string> paths, std::size_t max_runs) {
  std::vector<fs::path> runs;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    const std::string shown = one_line(path);
    check(fs::exists(status), "[watch] {}: no such folder", shown);
    check(fs::is_directory(status), "[watch] {}: expected the folder of a run, got a file", shown);
    if (is_run_folder(path)) {
      runs.emplace_back(path);
      continue;
    }
    std::vector<std::pair<fs::file_time_type, fs::path>> below;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (!is_run_folder(entry->path())) continue;
      fs::file_time_type newest = fs::file_time_type::min();
      const RunFolder folder{entry->path()};
      for (const fs::path& file : {folder.steps(), folder.log(), folder.config(), folder.path / ".lock"})
        if (is_file(file)) newest = std::max(newest, fs::last_write_time(file, ignored));
      below.emplace_back(newest, entry->path());
    }
    check(!error, "[watch] {}: cannot be read: {}", shown, error.message());
    check(!below.empty(), "[watch] {}: expected the folder of a run or of runs, it has no log.csv", shown);
    std::ranges::sort(below, std::greater());
    if (below.size() > max_runs) below.resize(max_runs);
    for (auto& [time, run] : below) runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace tandem
