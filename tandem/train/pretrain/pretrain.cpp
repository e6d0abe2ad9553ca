#include "tandem/train/pretrain/pretrain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/write_file.h"
#include "tandem/data/synthetic/scenes.h"
#include "tandem/files/checkpoint.h"
#include "tandem/files/folder_lock.h"
#include "tandem/files/read_file.h"
#include "tandem/files/safetensors.h"
#include "tandem/image/encode_png.h"
#include "tandem/ops/cast.h"
#include "tandem/report/pretrain_report.h"
#include "tandem/report/provenance.h"
#include "tandem/tensor/copy.h"
#include "tandem/text/format_number.h"
#include "tandem/train/options.h"
#include "tandem/train/pretrain/config.h"
#include "tandem/train/pretrain/pretrainer.h"
#include "tandem/train/run_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char *checkpoint_key = "tandem.pretrain", *command_key = "tandem.command";
constexpr std::uint64_t max_config_bytes = 1 << 20;

// The name of the data in the folder of the run: the last folder of a path.
std::string short_name(const std::string& data) {
  const fs::path path = fs::path(data).lexically_normal();
  const fs::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
  return last.empty() ? "photographs" : last.string();
}

void resolve(PretrainOptions& options) {
  detail::check_pretrain_options(options);
  if (!options.device) options.device = default_device();
  if (!options.precision)
    options.precision = options.device->is_cuda() ? MatmulPrecision::bf16 : MatmulPrecision::fp32;
}

// What the layers of a step keep for the backward pass; roughly. A GPU refuses memory that it does not have.
void check_memory(const PretrainOptions& options) {
  constexpr double bytes_per_pixel = 400;
  if (options.device->is_cuda()) return;
  const double pixels = 2 * static_cast<double>(options.batch_size) *
                        static_cast<double>(options.image_size) * static_cast<double>(options.image_size);
  const auto free = static_cast<double>(free_host_bytes());
  check(
      pixels * bytes_per_pixel <= free,
      "[pretrain] a step of {} images of {}x{} needs about {:.1f} GB of memory, {:.1f} are free: expected a "
      "smaller batch or smaller images",
      options.batch_size, options.image_size, options.image_size, pixels * bytes_per_pixel / 1e9, free / 1e9);
}

// Records are rows of doubles in a checkpoint.
constexpr std::int64_t record_size = 9;
std::vector<double> row_of(const PretrainRecord& r) {
  return {static_cast<double>(r.step),
          r.loss,
          r.retrieval_accuracy,
          r.attribute_loss,
          r.alignment,
          r.uniformity,
          r.learning_rate,
          r.seconds,
          r.views_per_second};
}
PretrainRecord record_of(const double* row) {
  return {.step = static_cast<std::int64_t>(row[0]),
          .loss = row[1],
          .retrieval_accuracy = row[2],
          .attribute_loss = row[3],
          .alignment = row[4],
          .uniformity = row[5],
          .learning_rate = row[6],
          .seconds = row[7],
          .views_per_second = row[8]};
}

class PretrainRun {
 public:
  PretrainRun(PretrainOptions options, const PretrainCallbacks& callbacks)
      : options_(std::move(options)), callbacks_(callbacks) {}

  PretrainResult run();

 private:
  fs::path checkpoint() const { return folder_.checkpoint(); }
  void log(const std::string& line) const {
    if (callbacks_.on_message) callbacks_.on_message(line);
  }
  std::int64_t record_interval() const { return std::max<std::int64_t>(options_.steps / 200, 1); }

  void restore();
  void run_steps();
  void add_record();
  void show_progress();
  void save();
  void write_weights();
  void write_report() const;
  void keep_pictures();

  PretrainOptions options_;
  const PretrainCallbacks& callbacks_;
  RunFolder folder_;
  TomlTable config_;
  std::vector<Fact> provenance_;
  std::unique_ptr<detail::ViewSource> source_;
  std::optional<detail::Pretrainer> trainer_;
  PretrainResult result_;
  std::int64_t step_ = 0;  // the next one
  double seconds_before_ = 0;
  double record_seconds_ = 0;  // at the last record
  bool last_damaged_ = false;  // the previous checkpoint was loaded
  Stopwatch watch_;
  std::vector<std::string> pictures_;  // PNG files: both views of some images of the first step
};

PretrainResult PretrainRun::run() {
  resolve(options_);
  check_run_folder(options_.run_folder, options_.resume);
  provenance_ = provenance(options_.command, options_.seed);
  if (options_.batch_size > 0) check_memory(options_);
  source_ = detail::make_view_source(options_, callbacks_.on_message);
  check_memory(options_);
  folder_ = make_run_folder(options_.run_folder, "pretrain-" + short_name(options_.data), options_.model);
  const FolderLock lock = lock_run_folder(folder_, options_.resume);
  result_.folder = folder_.path;
  config_ = detail::pretrain_config(options_);
  trainer_.emplace(options_, *source_);
  if (options_.resume) restore();
  write_file("pretrain", folder_.config(), to_toml(config_));
  std::string csv = pretrain_csv_header();
  for (const PretrainRecord& record : result_.records) csv += pretrain_csv_row(record);
  write_file("pretrain", folder_.log(), csv);
  log(fmt::format("Pretraining {} on {}: {}, {} steps of {} images, two views of {}x{} each", options_.model,
                  options_.device->to_string(), source_->description(), format_count(options_.steps),
                  format_count(options_.batch_size), options_.image_size, options_.image_size));
  run_steps();
  result_.seconds = seconds_before_ + watch_.elapsed_ms() / 1000;
  if (step_ == options_.steps) write_weights();
  write_report();
  return std::move(result_);
}

void PretrainRun::run_steps() {
  watch_ = {};
  Stopwatch since_save;
  while (step_ < options_.steps) {
    if (callbacks_.stop_signal) result_.stopped_by = callbacks_.stop_signal();
    if (result_.stopped_by != 0) break;
    trainer_->step(step_++);
    if (pictures_.empty()) keep_pictures();
    if (step_ % record_interval() == 0 || step_ == options_.steps) {
      add_record();
      if (since_save.elapsed_ms() >= 1000 * options_.save_every && step_ < options_.steps) {
        save();
        write_report();
        since_save = {};
      }
    }
    show_progress();
  }
  trainer_->synchronize();
  save();
}

void PretrainRun::restore() {
  const std::optional<NewestCheckpoint> newest = read_newest_checkpoint(checkpoint(), folder_.previous());
  if (!newest) return;
  last_damaged_ = !newest->problem.empty();
  if (last_damaged_)
    log(fmt::format("Warning: {}: the run goes on from {}", newest->problem, folder_.previous().string()));
  const std::string name = checkpoint().string();
  const TensorFile& file = newest->file;
  const auto saved = file.metadata.find(checkpoint_key);
  check(saved != file.metadata.end(), "[pretrain] {}: not a checkpoint of tandem pretrain", name);
  const std::vector<std::string> differing = differing_keys(config_, parse_toml(saved->second, name));
  check(differing.empty(), "[pretrain] {} belongs to another configuration: {}", name,
        fmt::join(differing, ", "));
  // The weights shall have the command that began the run.
  if (const auto command = file.metadata.find(command_key); command != file.metadata.end())
    options_.command = command->second;
  const auto named = [&](const char* wanted, DType dtype) {
    const auto found = std::ranges::find(file.tensors, wanted, &NamedTensor::name);
    check(found != file.tensors.end() && found->tensor.dtype() == dtype,
          "[pretrain] {}: not a checkpoint of tandem pretrain: it has no '{}'", name, wanted);
    return found->tensor;
  };
  const auto position = named("position", DType::i64).to_vector<std::int64_t>();
  const auto times = named("seconds", DType::f64).to_vector<double>();
  const Tensor rows = named("records", DType::f64);
  check(position.size() == 1 && position[0] >= 0 && position[0] <= options_.steps && times.size() == 2 &&
            rows.rank() == 2 && (rows.size(0) == 0 || rows.size(1) == record_size),
        "[pretrain] {}: its position is not valid for this run", name);
  try {
    trainer_->load_state(file.tensors);
  } catch (const Error& error) {
    fail("[pretrain] {}: {}", name, error.what());
  }
  const auto values = rows.to_vector<double>();
  for (std::int64_t i = 0; i < rows.size(0); ++i)
    result_.records.push_back(record_of(values.data() + i * record_size));
  step_ = position[0];
  seconds_before_ = times[0];
  record_seconds_ = times[1];
  log(fmt::format("Resumed after step {}", format_count(step_)));
}

void PretrainRun::add_record() {
  const detail::ContrastiveFigures figures = trainer_->take_figures();
  check(std::isfinite(figures.loss) && std::isfinite(figures.attribute_loss),
        "[pretrain] the loss is not finite after step {}; {}; try a lower learning rate than {}",
        format_count(step_), fs::exists(checkpoint()) ? "the last checkpoint is kept" : "nothing was saved",
        options_.learning_rate);
  const double seconds = seconds_before_ + watch_.elapsed_ms() / 1000;
  const std::int64_t before = result_.records.empty() ? 0 : result_.records.back().step;
  const PretrainRecord record{
      .step = step_,
      .loss = figures.loss,
      .retrieval_accuracy = figures.retrieval_accuracy,
      .attribute_loss = figures.attribute_loss,
      .alignment = figures.alignment,
      .uniformity = figures.uniformity,
      .learning_rate = trainer_->learning_rate(step_ - 1),
      .seconds = seconds,
      .views_per_second = static_cast<double>(2 * options_.batch_size * (step_ - before)) /
                          std::max(seconds - record_seconds_, 1e-9)};
  record_seconds_ = seconds;
  result_.records.push_back(record);
  append_file("pretrain", folder_.log(), pretrain_csv_row(record));
}

void PretrainRun::show_progress() {
  if (!callbacks_.on_progress) return;
  ProgressState state{.phase = "Pretraining",
                      .position = step_ * options_.batch_size,
                      .total = options_.steps * options_.batch_size};
  if (!result_.records.empty()) {
    state.samples_per_second = result_.records.back().views_per_second / 2;
    state.loss = result_.records.back().loss;
  }
  callbacks_.on_progress(state);
}

void PretrainRun::save() {
  check(trainer_->is_finite(), "[pretrain] weights are not finite after step {}; {}", format_count(step_),
        fs::exists(checkpoint()) ? "the last checkpoint is kept" : "nothing was saved");
  std::vector<double> records;
  for (const PretrainRecord& record : result_.records)
    for (const double value : row_of(record)) records.push_back(value);
  TensorFile file{.metadata = {{checkpoint_key, to_toml(config_)}, {command_key, options_.command}},
                  .tensors = {}};
  const double seconds = seconds_before_ + watch_.elapsed_ms() / 1000;
  file.tensors = {{"position", Tensor::from(std::vector<std::int64_t>{step_}, {1})},
                  {"seconds", Tensor::from(std::vector<double>{seconds, record_seconds_}, {2})},
                  {"records", Tensor::from(records, {std::ssize(result_.records), record_size})}};
  for (NamedTensor& one : trainer_->state()) file.tensors.push_back(std::move(one));
  start_checkpoint_file(checkpoint(), file).finish(last_damaged_ ? fs::path() : folder_.previous());
  last_damaged_ = false;
}

// Matrices and filters in bf16, everything else as it is.
void PretrainRun::write_weights() {
  TensorFile file{.metadata = {{"tandem.architecture", options_.model},
                               {"tandem.data", options_.data},
                               {"tandem.seed", fmt::format("{}", options_.seed)},
                               {command_key, options_.command},
                               {"tandem.config", to_toml(config_)}},
                  .tensors = trainer_->averaged_backbone()};
  for (NamedTensor& one : file.tensors)
    if (one.tensor.rank() >= 2) one.tensor = cast(one.tensor, DType::bf16);
  result_.weights = folder_.path / "backbone.safetensors";
  write_safetensors(result_.weights, file);
}

void PretrainRun::keep_pictures() {
  constexpr std::int64_t shown = 8;
  trainer_->synchronize();
  const Tensor images = source_->images().cpu();
  const std::int64_t side = images.size(1), bytes = side * side * 3, count = images.size(0) / 2;
  for (std::int64_t i = 0; i < std::min(shown, count); ++i)
    for (const std::int64_t row : {i, i + count}) {
      const std::uint8_t* const pixels = images.data<std::uint8_t>() + row * bytes;
      const std::vector<std::uint8_t> png = encode_png({side, side, 3, {pixels, pixels + bytes}});
      pictures_.emplace_back(png.begin(), png.end());
    }
}

void PretrainRun::write_report() const {
  PretrainReport report{.title = fmt::format("Pretraining {} on {}", options_.model, options_.data),
                        .command = options_.command,
                        .facts = {},
                        .provenance = provenance_,
                        .records = result_.records,
                        .steps = options_.steps,
                        .views = pictures_};
  report.facts = {
      {"data", source_->description()},
      {"model", options_.model},
      {"batch", fmt::format("{} images, two views of {}x{} each", format_count(options_.batch_size),
                            options_.image_size, options_.image_size)},
      {"optimizer", fmt::format("LARS, learning rate {} for 1,024 images, cosine", options_.learning_rate)},
      {"temperature", fmt::format("{}", options_.temperature)},
      {"device", options_.device->to_string()},
      {"precision", name_of(*options_.precision)}};
  write_file("pretrain", folder_.report(), pretrain_page(report));
}

}  // namespace

PretrainOptions read_pretrain_options(const std::filesystem::path& folder) {
  const fs::path file = RunFolder{folder}.config();
  PretrainOptions options =
      detail::read_pretrain_config(parse_toml(read_file("pretrain", file, max_config_bytes), file.string()));
  options.run_folder = folder;
  options.resume = true;
  return options;
}

PretrainResult pretrain(PretrainOptions options, const PretrainCallbacks& callbacks) {
  return PretrainRun(std::move(options), callbacks).run();
}

}  // namespace tandem
