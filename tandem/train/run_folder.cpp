// A checkpoint's tensors are "model.…", "optimizer.…", "average.…" if the run averages the weights,
// "lookahead.…" if it has slow ones, and the run's position, stored as numbers so that they are restored bit
// for bit; its metadata are the configuration.
#include "tandem/train/run_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/ops/finite.h"
#include "tandem/tensor/prefixed.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* format_version = "2";

// An EpochRecord as a row of doubles, and back; its metrics come last.
constexpr std::int64_t record_size = 9;
void append(std::vector<double>& row, const EpochRecord& r) {
  row.insert(row.end(), {static_cast<double>(r.epoch), r.train_loss, r.train_accuracy, r.val_loss,
                         r.val_accuracy, r.learning_rate, r.seconds, r.samples_per_second, r.waited_seconds});
  for (const NamedFigure& metric : r.metrics) row.push_back(metric.value);
}
EpochRecord record_from(const double* row, const std::vector<std::string>& metrics) {
  EpochRecord record{.epoch = static_cast<int>(row[0]),
                     .train_loss = row[1],
                     .train_accuracy = row[2],
                     .val_loss = row[3],
                     .val_accuracy = row[4],
                     .learning_rate = row[5],
                     .seconds = row[6],
                     .samples_per_second = row[7],
                     .waited_seconds = row[8],
                     .metrics = {}};
  for (const std::string& name : metrics)
    record.metrics.push_back({name, row[record_size + std::ssize(record.metrics)]});
  return record;
}

// Figures of all epochs. Not a copy in a block of the pool: each save has more of them, and the pool would
// keep a block of every size.
Tensor figures_of_epochs(std::vector<double> values, std::int64_t rows, std::int64_t columns) {
  if (values.empty()) return Tensor::from(values, {rows, columns});
  const auto owner = std::make_shared<std::vector<double>>(std::move(values));
  return Tensor::borrow(owner->data(), {rows, columns}, {columns, 1}, DType::f64, cpu_device, owner);
}

// Of the finished epochs and the current one. Not in checkpoints of runs without shards, nor in old ones.
Tensor exchange_times(const RunPosition& position) {
  std::vector<double> seconds;
  for (const EpochRecord& record : position.records) seconds.push_back(record.exchange_seconds);
  seconds.push_back(position.exchange_seconds);
  const std::int64_t count = std::ssize(seconds);
  return figures_of_epochs(std::move(seconds), count, 1).reshape({count});
}
void set_exchange_times(RunPosition& position, const Tensor& times, const std::string& name) {
  const auto seconds = times.to_vector<double>();
  check(seconds.size() == position.records.size() + 1, "[train] {}: its position is not valid for this run",
        name);
  for (std::size_t i = 0; i < position.records.size(); ++i) position.records[i].exchange_seconds = seconds[i];
  position.exchange_seconds = seconds.back();
}

Tensor tensor_named(const TensorFile& file, const std::string& name, DType dtype, const std::string& path) {
  const auto found = std::ranges::find(file.tensors, name, &NamedTensor::name);
  check(found != file.tensors.end() && found->tensor.dtype() == dtype,
        "[train] {}: not a checkpoint of a training run: it has no '{}'", path, name);
  return found->tensor;
}

constexpr const char* lock_name = ".lock";

bool is_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(".tandem-") && name.ends_with(".tmp");
}

// A run that was killed at its start leaves an unlocked lock, perhaps a temporary file, and nothing else.
void check_unused(const fs::path& path, bool resume) {
  std::error_code ignored;
  const auto is_content = [](const fs::directory_entry& entry) {
    return entry.path().filename() != lock_name && !is_temporary(entry.path());
  };
  const fs::directory_iterator entries(path, ignored);
  check(resume || std::none_of(begin(entries), end(entries), is_content),
        "[train] {} is not empty: expected a new or empty run folder, or resume = true", path.string());
}

// The keys that differ and would change the result of the run.
std::vector<std::string> incompatible_keys(TomlTable now, const TomlTable& before) {
  // Where images are augmented and how many are prefetched does not change the result, and the checkpoint has
  // the weights.
  std::vector<std::string> ignored{"from",     "device",         "augment_on", "workers", "worker_kind",
                                   "prefetch", "worker_timeout", "pretrained", "with"};
  const TomlEntry* const schedule = now.find("schedule");
  if (schedule && (plain_text(schedule->value) == "constant" || plain_text(schedule->value) == "step"))
    ignored.push_back("epochs");
  std::erase_if(now.entries, [&](const TomlEntry& entry) {
    return std::ranges::find(ignored, entry.key) != ignored.end();
  });
  return differing_keys(now, before);
}

}  // namespace

FolderLock lock_run_folder(const RunFolder& folder, bool resume) {
  std::optional<FolderLock> lock = FolderLock::try_lock(folder.path);
  check(lock.has_value(), "[train] {} is in use by {}", folder.path.string(), last_locked_by(folder.path));
  check_unused(folder.path, resume);
  remove_temporary_files(folder);
  return std::move(*lock);
}

void check_run_folder(const fs::path& path, bool resume) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  check(fs::is_directory(path, ignored), "[train] {} is not a folder", path.string());
  if (fs::exists(path / lock_name, ignored))
    lock_run_folder({path}, resume);
  else
    check_unused(path, resume);
}

RunFolder make_run_folder(const fs::path& path, const std::string& data, const std::string& model) {
  std::error_code error;
  if (!path.empty()) {
    fs::create_directories(path, error);
    check(!error, "[train] cannot create the folder {}: {}", path.string(), error.message());
    sync_path(path.parent_path());
    return {path};
  }
  fs::create_directories("runs", error);
  check(!error, "[train] cannot create the folder runs: {}", error.message());
  for (int number = 1;; ++number) {
    const fs::path candidate = fs::path("runs") / fmt::format("{}-{}-{}", data, model, number);
    const bool created = fs::create_directory(candidate, error);
    check(!error || error == std::errc::file_exists, "[train] cannot create the folder {}: {}",
          candidate.string(), error.message());
    if (!created) continue;
    sync_path("runs");
    return {candidate};
  }
}

void remove_temporary_files(const RunFolder& folder) {
  std::error_code ignored;
  std::vector<fs::path> stale;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path, ignored))
    if (is_temporary(entry.path())) stale.push_back(entry.path());
  for (const fs::path& path : stale) fs::remove(path, ignored);
}

const EpochRecord* RunPosition::best() const {
  const auto found = std::ranges::max_element(records, {}, &EpochRecord::val_accuracy);
  return found == records.end() ? nullptr : &*found;
}

// Checks the tensors that training changes, on their device.
bool is_finite(const TrainingState& state) {
  std::vector<Tensor> changed;
  const auto add = [&](const NamedTensors& tensors, bool trained_only) {
    for (const auto& [name, tensor] : tensors)
      if (is_floating(tensor.dtype()) && (!trained_only || tensor.requires_grad()))
        changed.push_back(tensor.detach());
  };
  add(state.model().parameters(), true);
  add(state.model().buffers(), false);
  add(state.task().optimizer.state(), false);
  return all_finite(changed);
}

void save_checkpoint(const RunFolder& folder, const TomlTable& config, const TrainingState& state,
                     const RunPosition& position, const CheckpointTexts& texts) {
  start_checkpoint(folder, config, state, position, texts).finish();
}

PendingFile start_checkpoint(const RunFolder& folder, const TomlTable& config, const TrainingState& state,
                             const RunPosition& position, const CheckpointTexts& texts) {
  TensorFile file{.metadata = {{"tandem.checkpoint", format_version}, {"tandem.config", to_toml(config)}},
                  .tensors = {}};
  file.metadata.insert(texts.begin(), texts.end());
  const std::int64_t columns =
      record_size + (position.records.empty() ? 0 : std::ssize(position.records.front().metrics));
  std::vector<double> records;
  records.reserve(position.records.size() * static_cast<std::size_t>(columns));
  for (const EpochRecord& record : position.records) append(records, record);
  const StepSums& sums = position.sums;
  file.tensors = {{"position", Tensor::from(std::vector<std::int64_t>{position.epoch, position.step,
                                                                      sums.correct, sums.samples},
                                            {4})},
                  {"sums", Tensor::from(std::vector<double>{sums.loss, position.epoch_seconds,
                                                            position.total_seconds, position.waited_seconds},
                                        {4})},
                  {"records", figures_of_epochs(std::move(records), std::ssize(position.records), columns)}};
  if (state.task().shards() > 1) file.tensors.push_back({"exchange", exchange_times(position)});
  add_prefixed(file.tensors, "model.", state.model().state_dict());
  add_prefixed(file.tensors, "optimizer.", state.task().optimizer.state());
  if (state.task().average) add_prefixed(file.tensors, "average.", state.task().average->state());
  if (state.task().lookahead) add_prefixed(file.tensors, "lookahead.", state.task().lookahead->state());
  return start_checkpoint_file(folder.checkpoint(), file);
}

bool has_checkpoint(const RunFolder& folder) {
  std::error_code ignored;
  return fs::exists(folder.checkpoint(), ignored) || fs::exists(folder.previous(), ignored);
}

std::optional<NewestCheckpoint> read_run_checkpoint(const RunFolder& folder) {
  std::optional<NewestCheckpoint> found = read_newest_checkpoint(folder.checkpoint(), folder.previous());
  if (!found) return std::nullopt;
  const auto& metadata = found->file.metadata;
  const auto version = metadata.find("tandem.checkpoint");
  check(metadata.contains("tandem.config") && version != metadata.end() && version->second == format_version,
        "[train] {}: not a checkpoint of a training run", folder.checkpoint().string());
  return found;
}

std::int64_t finished_epochs(const TensorFile& checkpoint, const RunFolder& folder) {
  const std::string name = folder.checkpoint().string();
  const auto counters = tensor_named(checkpoint, "position", DType::i64, name).to_vector<std::int64_t>();
  check(!counters.empty(), "[train] {}: its position is not valid for this run", name);
  return counters.front();
}

std::optional<RunPosition> load_checkpoint(const RunFolder& folder, const TomlTable& config,
                                           TrainingState& state, const std::vector<std::string>& metrics) {
  const std::optional<NewestCheckpoint> found = read_run_checkpoint(folder);
  if (!found) return std::nullopt;
  return restore_checkpoint(found->file, folder, config, state, metrics);
}

RunPosition restore_checkpoint(const TensorFile& file, const RunFolder& folder, const TomlTable& config,
                               TrainingState& state, const std::vector<std::string>& metrics) {
  const std::string name = folder.checkpoint().string();
  const auto saved = file.metadata.find("tandem.config");
  const std::vector<std::string> differing = incompatible_keys(config, parse_toml(saved->second, name));
  check(differing.empty(), "[train] {} belongs to another configuration: {}", name,
        fmt::join(differing, ", "));

  const Tensor counters = tensor_named(file, "position", DType::i64, name);
  const Tensor sums = tensor_named(file, "sums", DType::f64, name);
  const Tensor rows = tensor_named(file, "records", DType::f64, name);
  const auto at = counters.to_vector<std::int64_t>();
  const auto values = sums.to_vector<double>();
  const auto records = rows.to_vector<double>();
  const bool fits = at.size() == 4 && values.size() == 4 && rows.rank() == 2 && rows.size(1) >= record_size;
  check(fits && at[0] == rows.size(0) && at[1] >= 0 && at[2] >= 0 && at[3] >= 0,
        "[train] {}: its position is not valid for this run", name);
  check(rows.size(0) == 0 || rows.size(1) == record_size + std::ssize(metrics),
        "[train] {} has {} metrics, expected {} as in this run", name, rows.size(1) - record_size,
        metrics.size());
  RunPosition position{.epoch = at[0],
                       .step = at[1],
                       .sums = {.loss = values[0], .correct = at[2], .samples = at[3]},
                       .epoch_seconds = values[1],
                       .total_seconds = values[2],
                       .waited_seconds = values[3],
                       .records = {}};
  for (std::int64_t i = 0; i < rows.size(0); ++i)
    position.records.push_back(record_from(records.data() + i * rows.size(1), metrics));
  if (std::ranges::any_of(file.tensors, [](const NamedTensor& one) { return one.name == "exchange"; }))
    set_exchange_times(position, tensor_named(file, "exchange", DType::f64, name), name);
  try {
    state.model().load_state_dict(take_prefixed("model.", file.tensors));
    state.optimizer().load_state(take_prefixed("optimizer.", file.tensors));
    if (state.task().average) state.task().average->load_state(take_prefixed("average.", file.tensors));
    if (state.task().lookahead) state.task().lookahead->load_state(take_prefixed("lookahead.", file.tensors));
  } catch (const Error& error) {
    fail("[train] {}: {}", name, error.what());
  }
  return position;
}

}  // namespace tandem
