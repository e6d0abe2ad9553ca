#include "tandem/study/plates.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/photo_set.h"
#include "tandem/data/photo_source.h"
#include "tandem/data/plates.h"
#include "tandem/data/split.h"
#include "tandem/files/fetch.h"
#include "tandem/nn/resnet.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/random.h"
#include "tandem/report/figures.h"
#include "tandem/study/machine_report.h"
#include "tandem/train/engine.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/model_file.h"
#include "tandem/train/pretrained.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr double learning_rate = 1e-3;
constexpr int warm_up_steps = 2, counted_steps = 5;  // taken apart

int side_of(const PlatesFlow& flow) {
  return static_cast<int>(flow.image_size);
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tandem-plates-XXXXXX").string();
    check(::mkdtemp(pattern.data()) != nullptr, "[study plates] cannot make the folder {}", pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Adds to `ms` what `work` takes, that of the device included.
template <class Work>
auto timed(double& ms, Device device, Work&& work) {
  current_stream(device).synchronize();
  const Stopwatch watch;
  const auto finish = [&] {
    current_stream(device).synchronize();
    ms += watch.elapsed_ms();
  };
  if constexpr (std::is_void_v<decltype(work())>) {
    work();
    finish();
  } else {
    auto made = work();
    finish();
    return made;
  }
}

// The same for what brings something to the device; on the CPU it is there already, and nothing is counted.
template <class Work>
auto timed_copy(FlowResult& result, Work&& work) {
  double nothing = 0;
  return timed(result.device.is_cuda() ? result[FlowPhase::copy] : nothing, result.device, work);
}

void wake_up(Device device) {
  random_integers({1}, 0, 2, {.seed = 1, .dtype = DType::i32, .device = device});
  current_stream(device).synchronize();
}

// Gives what `source` gives and counts the time until it is there.
class TimedSource : public BatchSource {
 public:
  TimedSource(BatchSource& source, double& ms) : BatchSource(source.plan()), source_(source), ms_(ms) {}

  Device device() const override { return source_.device(); }
  std::int64_t image_size() const override { return source_.image_size(); }
  SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) override {
    return timed(ms_, device(), [&] { return source_.take(epoch, first, most); });
  }
  int busy_cpus() const override { return source_.busy_cpus(); }
  std::string description() const override { return source_.description(); }

 private:
  BatchSource& source_;
  double& ms_;
};

// The parts of a step's time, measured on a few steps that are not captured as a graph.
struct StepParts {
  double forward = 0, backward = 0, update = 0;

  double sum() const { return forward + backward + update; }
};

StepParts measure_steps(const TrainingTask& task) {
  const Device device = task.source.device();
  const StreamView stream = current_stream(device);
  const std::int64_t batch = task.batches().batch_size;
  const Tensor pixels = random_integers({batch, task.source.image_size()}, 0, 256,
                                        {.seed = 1, .dtype = DType::u8, .device = device});
  const Tensor labels = random_integers({batch}, 0, 2, {.seed = 2, .dtype = DType::i32, .device = device});
  task.model.train();
  StepParts parts;
  for (int i = 0; i < warm_up_steps + counted_steps; ++i) {
    Event begin(device), computed(device), derived(device), updated(device);
    begin.record(stream);
    const Tensor outputs = task.model.forward(network_input(pixels, task.input));
    const Tensor loss = compute_loss(task.loss, outputs, labels);
    computed.record(stream);
    backward(loss);
    derived.record(stream);
    task.optimizer.step();
    task.optimizer.zero_grad();
    updated.record(stream);
    updated.synchronize();
    if (i < warm_up_steps) continue;
    parts.forward += computed.elapsed_ms_since(begin);
    parts.backward += derived.elapsed_ms_since(computed);
    parts.update += updated.elapsed_ms_since(derived);
  }
  return parts;
}

bool same_outputs(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return std::abs(x - y) <= 1e-4f * std::max(1.0f, std::abs(x)); });
}

// What a device has of the photographs.
struct FlowPhotos {
  std::shared_ptr<const PhotoStore> train;
  ImageSet validation;
  std::vector<std::string> classes;
};

// Photographs to judge or to predict, made into images of the network's size and brought to the device.
ImageSet read_set(const fs::path& folder, const PlatesFlow& flow, FlowResult& result) {
  const ImageFolder found = scan_image_folder(folder);
  const PhotoSet set = timed(result[FlowPhase::decode], result.device, [&] {
    return make_photo_set(found.files, found.labels, found.classes, evaluation_photos(side_of(flow)));
  });
  return timed_copy(result, [&] { return set.images.to(result.device); });
}

FlowPhotos read_photos(const fs::path& split, const PlatesFlow& flow, FlowResult& result) {
  const ImageFolder found = scan_image_folder(split / "train");
  FlowPhotos photos;
  photos.train = timed(result[FlowPhase::decode], result.device,
                       [&] { return std::make_shared<const PhotoStore>(found.files, found.labels); });
  photos.validation = read_set(split / "val", flow, result);
  photos.classes = found.classes;
  result.train = photos.train->table().count();
  result.validation = photos.validation.count();
  return photos;
}

// On a GPU the photographs are copied there, once.
std::unique_ptr<BatchSource> make_source(const FlowPhotos& photos, const PlatesFlow& flow,
                                         FlowResult& result) {
  const BatchPlan plan{.samples = result.train, .batch_size = flow.batch_size, .seed = flow.seed};
  const PhotoRecipe recipe = training_photos(side_of(flow));
  return timed_copy(result, [&] { return photo_source(photos.train, plan, recipe, result.device, {}); });
}

NamedTensors trained_parameters(const Module& model) {
  NamedTensors trained = model.parameters();
  std::erase_if(trained, [](const NamedTensor& named) { return !named.tensor.requires_grad(); });
  return trained;
}

// Returns the time of the steps, that of their images included.
double train_epochs(const TrainingTask& task, const ImageSet& validation, const PlatesFlow& flow,
                    FlowResult& result) {
  const std::unique_ptr<Engine> engine = make_engine(task);
  result.engine = engine->description();
  double steps_ms = 0;
  for (std::int64_t epoch = 0; epoch < flow.epochs; ++epoch) {
    const Stopwatch watch;
    timed(steps_ms, result.device, [&] {
      const StepSums sums = engine->run(epoch, 0, task.batches().steps());
      check(std::isfinite(sums.loss), "[study plates] the loss is not finite in epoch {}", epoch + 1);
      engine->store();
    });
    const Evaluation judged = timed(result[FlowPhase::evaluate], result.device,
                                    [&] { return evaluate(task.model, validation, task.loss, task.input); });
    result.validation_accuracy.push_back(judged.accuracy);
    result.epoch_ms.push_back(watch.elapsed_ms());
  }
  return steps_ms;
}

ModelInfo model_info(const FlowPhotos& photos, const PlatesFlow& flow, const FlowResult& result) {
  return {.architecture = {.model = "resnet18",
                           .layers = {},
                           .channels = 3,
                           .classes = std::ssize(photos.classes)},
          .classes = photos.classes,
          .height = flow.image_size,
          .width = flow.image_size,
          .channels = 3,
          .norm = photo_norm,
          .transform = to_string(evaluation_photos(side_of(flow))),
          .data = "plates",
          .command = "tandem study plates",
          .epoch = flow.epochs,
          .accuracy = result.validation_accuracy.back()};
}

// Divides the time of all steps, less that for images, as a few steps' that can be taken apart.
void divide_steps(const TrainingTask& task, double steps_ms, FlowResult& result) {
  const StepParts parts = measure_steps(task);
  const double scale = std::max(0.0, steps_ms - result[FlowPhase::augment]) / parts.sum();
  result[FlowPhase::forward] = scale * parts.forward;
  result[FlowPhase::backward] = scale * parts.backward;
  result[FlowPhase::update] = scale * parts.update;
}

fs::path pretrained_of(const StudyOptions& options) {
  if (options.pretrained == "none") return {};
  if (options.pretrained != "auto") return options.pretrained;
  try {
    return fetch_weights("resnet18", {.offline = true});
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void write_flow_plates(const fs::path& root, const PlatesFlow& flow) {
  write_plates(root, {.train = flow.of_each_kind, .test = flow.fresh, .seed = flow.seed, .size = flow.side});
}

FlowResult run_plates_flow(const fs::path& root, const PlatesFlow& flow, Device device) {
  FlowResult result{.device = device};
  wake_up(device);
  const fs::path own = root / device.to_string();
  const Stopwatch watch;
  split_folder(root / "train", own, {.every = flow.every});
  const FlowPhotos photos = read_photos(own, flow, result);
  const std::unique_ptr<BatchSource> source = make_source(photos, flow, result);
  ResNet model({.depth = 18, .classes = std::ssize(photos.classes), .seed = flow.seed});
  if (!flow.pretrained.empty()) load_pretrained(model, flow.pretrained);
  model.freeze_backbone();
  timed_copy(result, [&] { model.to(device); });
  Adam optimizer(trained_parameters(model), {.lr = learning_rate});
  double augment_ms = 0;
  TimedSource images(*source, augment_ms);
  const TrainingTask task{.model = model,
                          .optimizer = optimizer,
                          .source = images,
                          .schedule = {.kind = ScheduleKind::step, .step_size = 7, .gamma = 0.1},
                          .learning_rate = learning_rate,
                          .input = {.flat = false,
                                    .height = flow.image_size,
                                    .width = flow.image_size,
                                    .channels = 3,
                                    .norm = photo_norm}};
  const double steps_ms = train_epochs(task, photos.validation, flow, result);
  result[FlowPhase::augment] = augment_ms;

  // Through the model's file, as `tandem predict` does. It is the last epoch's: which one is best may hang on
  // a single photograph and differ between devices.
  const fs::path file = own / "model.safetensors";
  save_model(file, model, model_info(photos, flow, result));
  const Model loaded = load_model(file);
  timed_copy(result, [&] { loaded.module->to(device); });
  const ImageSet fresh = read_set(root / "test", flow, result);
  Evaluation seen = timed(result[FlowPhase::predict], device,
                          [&] { return evaluate(*loaded.module, fresh, task.loss, task.input); });
  result.total_ms = watch.elapsed_ms();
  result.predictions = std::move(seen.predictions);
  result.accuracy = seen.accuracy;

  const std::vector<float> kept = outputs_of(model, photos.validation.images, task.input).to_vector<float>();
  result.file_agrees =
      same_outputs(kept, outputs_of(*loaded.module, photos.validation.images, task.input).to_vector<float>());
  divide_steps(task, steps_ms, result);
  const double known = std::accumulate(result.phase_ms.begin(), result.phase_ms.end(), 0.0);
  result[FlowPhase::other] = std::max(0.0, result.total_ms - known);
  return result;
}

StudyReport study_plates(const StudyOptions& options) {
  PlatesFlow flow{.pretrained = pretrained_of(options), .seed = options.seed};
  if (options.quick) flow.epochs = 3, flow.fresh = 40;
  if (options.epochs > 0) flow.epochs = options.epochs;
  std::vector<Device> devices = options.devices;
  if (devices.empty()) {
    devices = {cpu_device};
    for (int i = 0; i < cuda_device_count(); ++i) devices.push_back(cuda_device(i));
  }
  if (!flow.pretrained.empty()) {  // weights that will not do are better known before all is drawn
    ResNet model({.depth = 18, .classes = 2});
    load_pretrained(model, flow.pretrained);
  }
  const TemporaryFolder folder;
  const Stopwatch watch;
  write_flow_plates(folder.path(), flow);
  const double drawn_ms = watch.elapsed_ms();
  std::vector<FlowResult> results;
  for (const Device device : devices) results.push_back(run_plates_flow(folder.path(), flow, device));
  StudyReport report{
      .study = "plates",
      .title = "Transfer learning on photographs of plates",
      .machine = report_facts(),
      .introduction = fmt::format(
          "{} drawn photographs of clean and dirty plates ({}×{}) are split into {} to train with and {} to "
          "judge by; ResNet-18 with {} weights, frozen but for a new last layer, is trained on crops of "
          "{}×{} for {} epochs in batches of {} (Adam, rate 0.001, a tenth after every 7 epochs) and judged "
          "after each; its file is written, read again, and tells {} fresh plates apart. Times are of the "
          "whole flow; “an epoch” is one with its judging, median over all. “augment” is how long the steps "
          "stood still for images: on the CPU workers make them meanwhile. “forward”, “backward” and "
          "“update” share the time of the steps, which go through the frozen layers several at once, as {} "
          "steps "
          "do that were measured apart, one by one. A GPU is woken up before the clock starts. Every device "
          "must see at least "
          "{:.0f} "
          "% of the fresh plates as the first does, and the file must give the trained model's outputs.",
          2 * flow.of_each_kind, flow.side, flow.side, results.front().train, results.front().validation,
          flow.pretrained.empty() ? "random" : "pretrained", flow.image_size, flow.image_size, flow.epochs,
          flow.batch_size, flow.fresh, counted_steps, 100 * (1 - differing_predictions)),
      .rows = plates_rows(results),
      .findings = plates_findings(results),
      .plots = plates_plots(results)};
  if (flow.pretrained.empty())
    report.findings.push_back(
        "The frozen weights are random, so that only a last layer over chance features has learnt anything: "
        "with those that tandem fetch resnet18 brings the flow does what it is meant for, in the same time.");
  report.findings.push_back(
      fmt::format("Drawing the plates and writing their files took {}; it is not counted.",
                  format_figure(drawn_ms, Unit::milliseconds)));
  if (cuda_device_count() == 0)
    report.findings.push_back("There is only the CPU here: " + why_no_cuda() + ".");
  return report;
}

}  // namespace tandem
