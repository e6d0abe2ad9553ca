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
#include "tandem/data/loader/make_source.h"
#include "tandem/data/photo_set.h"
#include "tandem/data/split.h"
#include "tandem/data/synthetic/plates.h"
#include "tandem/files/fetch.h"
#include "tandem/nn/resnet.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/study_progress.h"
#include "tandem/text/format_number.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/load_weights.h"
#include "tandem/train/model_file.h"
#include "tandem/train/pretrained.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr double learning_rate = 1e-3;
// Steps that measure_steps() times phase by phase.
constexpr int warm_up_steps = 2, counted_steps = 5;

int side_of(const PlatesFlow& flow) {
  return static_cast<int>(flow.image_size);
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tandem-plates-XXXXXX").string();
    check(::mkdtemp(pattern.data()) != nullptr, "[study plates] cannot create the folder {}", pattern);
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

// Adds the time of `work` to `ms`, including the device work it starts.
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
    auto value = work();
    finish();
    return value;
  }
}

// The same for copies to the device. On the CPU there is no copy, and nothing is counted.
template <class Work>
auto timed_copy(FlowResult& result, Work&& work) {
  double discarded = 0;
  return timed(result.device.is_cuda() ? result[FlowPhase::copy] : discarded, result.device, work);
}

void warm_up_device(Device device) {
  random_integers({1}, 0, 2, {.seed = 1, .dtype = DType::i32, .device = device});
  current_stream(device).synchronize();
}

// Forwards to `source` and adds up the time until the images are ready.
class TimedSource : public BatchSource {
 public:
  TimedSource(BatchSource& source, double& ms) : BatchSource(source.plan()), source_(source), ms_(ms) {}

  Device device() const override { return source_.device(); }
  std::int64_t image_size() const override { return source_.image_size(); }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override {
    return timed(ms_, device(), [&] { return source_.next_block(epoch, first, max_count); });
  }
  int reserved_cpus() const override { return source_.reserved_cpus(); }
  std::string description() const override { return source_.description(); }

 private:
  BatchSource& source_;
  double& ms_;
};

// The time of each phase of a step, measured on a few steps that are not captured as a CUDA graph.
struct StepParts {
  double forward = 0;
  double backward = 0;
  double update = 0;

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
    Event begin(device), forward_done(device), backward_done(device), update_done(device);
    begin.record(stream);
    const Tensor outputs = task.model.forward(network_input(pixels, task.input));
    const Tensor loss = compute_loss(task.loss, outputs, labels);
    forward_done.record(stream);
    backward(loss);
    backward_done.record(stream);
    task.optimizer.step();
    task.optimizer.zero_grad();
    update_done.record(stream);
    update_done.synchronize();
    if (i < warm_up_steps) continue;
    parts.forward += forward_done.elapsed_ms_since(begin);
    parts.backward += backward_done.elapsed_ms_since(forward_done);
    parts.update += update_done.elapsed_ms_since(backward_done);
  }
  return parts;
}

bool same_outputs(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return std::abs(x - y) <= 1e-4f * std::max(1.0f, std::abs(x)); });
}

// The photographs as one device uses them.
struct FlowPhotos {
  std::shared_ptr<const PhotoStore> train;
  ImageSet validation;
  std::vector<std::string> classes;
};

// Photographs for validation or prediction, resized to the network input and copied to the device.
ImageSet read_set(const fs::path& folder, const PlatesFlow& flow, FlowResult& result) {
  const ImageFolder found = scan_image_folder(folder);
  const PhotoSet set = timed(result[FlowPhase::decode], result.device, [&] {
    return load_photo_set(found.files, found.labels, found.classes, evaluation_photo_recipe(side_of(flow)));
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

// On a GPU the photographs are copied there once.
std::unique_ptr<BatchSource> make_source(const FlowPhotos& photos, const PlatesFlow& flow,
                                         FlowResult& result) {
  const BatchPlan plan{.samples = result.train, .batch_size = flow.batch_size, .seed = flow.seed};
  const Transform transform = training_transform(side_of(flow));
  return timed_copy(result, [&] {
    return tandem::make_source(detail::sample_store(photos.train), plan, transform, result.device, {});
  });
}

NamedTensors trained_parameters(const Module& model) {
  NamedTensors trained = model.parameters();
  std::erase_if(trained, [](const NamedTensor& named) { return !named.tensor.requires_grad(); });
  return trained;
}

// Returns the time of all steps, including waiting for their images.
double train_epochs(const TrainingTask& task, const ImageSet& validation, const PlatesFlow& flow,
                    FlowResult& result) {
  const std::unique_ptr<Engine> engine = make_engine(task);
  result.engine = engine->description();
  double steps_ms = 0;
  const Stopwatch total;
  for (std::int64_t epoch = 0; epoch < flow.epochs; ++epoch) {
    if (epoch > 0 && total.elapsed_ms() > flow.max_training_ms) break;
    if (flow.on_epoch) flow.on_epoch(epoch + 1);
    const Stopwatch watch;
    timed(steps_ms, result.device, [&] {
      const StepSums sums = engine->run(epoch, 0, task.batches().steps());
      check(std::isfinite(sums.loss), "[study plates] the loss is not finite in epoch {}", epoch + 1);
      engine->store();
    });
    const Evaluation evaluation = timed(result[FlowPhase::evaluate], result.device, [&] {
      return evaluate(task.model, validation, task.loss, task.input);
    });
    result.validation_accuracy.push_back(evaluation.accuracy);
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
          .norm = imagenet_norm,
          .transform = to_string(evaluation_photo_recipe(side_of(flow))),
          .data = "plates",
          .command = "tandem study plates",
          .epoch = std::ssize(result.epoch_ms),
          .accuracy = result.validation_accuracy.back()};
}

// Splits the time of all steps, minus the wait for images, in the proportions of a few steps that are timed
// phase by phase.
void attribute_step_time(const TrainingTask& task, double steps_ms, FlowResult& result) {
  const StepParts parts = measure_steps(task);
  const double scale = std::max(0.0, steps_ms - result[FlowPhase::augment]) / parts.sum();
  result[FlowPhase::forward] = scale * parts.forward;
  result[FlowPhase::backward] = scale * parts.backward;
  result[FlowPhase::update] = scale * parts.update;
}

// Sets flow.epochs to the number that was trained.
std::vector<FlowResult> run_on_devices(const fs::path& root, PlatesFlow& flow,
                                       const std::vector<Device>& devices, StudyProgress& progress) {
  std::vector<FlowResult> results;
  const std::int64_t wanted = flow.epochs;
  // The first device, usually the slowest, gets most of the time; the others train as many epochs as it did.
  flow.max_training_ms = 0.7 * progress.left_ms();
  for (const Device device : devices) {
    flow.on_epoch = [&](std::int64_t epoch) {
      progress.report(fmt::format("{}, epoch {} of {}", device.to_string(), epoch, flow.epochs));
    };
    results.push_back(run_plates_flow(root, flow, device));
    flow.epochs = std::ssize(results.front().epoch_ms);
    flow.max_training_ms = std::numeric_limits<double>::infinity();
  }
  if (flow.epochs < wanted) progress.leave_out(fmt::format("{} of {} epochs", wanted - flow.epochs, wanted));
  return results;
}

struct InitialWeights {
  std::string description;
  fs::path file;
};

// Nothing is downloaded.
InitialWeights weights_of(const StudyOptions& options) {
  TrainOptions training{.model = "resnet18", .pretrained = options.pretrained};
  const WeightsFetcher fetch = [](const std::string& model) {
    return fetch_weights(model, {.offline = true});
  };
  training.pretrained = choose_weights(training, fetch).name;
  return {describe_weights(training.pretrained), find_weights(training, fetch)};
}

}  // namespace

void write_flow_plates(const fs::path& root, const PlatesFlow& flow) {
  write_plates(
      root,
      {.train = flow.images_per_class, .test = flow.test_images, .seed = flow.seed, .size = flow.photo_size});
}

FlowResult run_plates_flow(const fs::path& root, const PlatesFlow& flow, Device device) {
  FlowResult result{.device = device};
  warm_up_device(device);
  const fs::path own = root / device.to_string();
  const Stopwatch watch;
  split_folder(root / "train", own, {.every = flow.every});
  const FlowPhotos photos = read_photos(own, flow, result);
  const std::unique_ptr<BatchSource> source = make_source(photos, flow, result);
  ResNet model({.depth = 18, .classes = std::ssize(photos.classes), .seed = flow.seed});
  if (!flow.pretrained.empty()) load_weights(model, flow.pretrained);
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
                                    .norm = imagenet_norm}};
  const double steps_ms = train_epochs(task, photos.validation, flow, result);
  result[FlowPhase::augment] = augment_ms;

  // Predict with the saved model file, as `tandem predict` does. It is the model of the last epoch, because
  // which epoch is best may depend on a single photograph and differ between devices.
  const fs::path file = own / "model.safetensors";
  save_model(file, model, model_info(photos, flow, result));
  const Model loaded = load_model(file);
  timed_copy(result, [&] { loaded.module->to(device); });
  const ImageSet test = read_set(root / "test", flow, result);
  Evaluation tested = timed(result[FlowPhase::predict], device,
                            [&] { return evaluate(*loaded.module, test, task.loss, task.input); });
  result.total_ms = watch.elapsed_ms();
  result.predictions = std::move(tested.predictions);
  result.accuracy = tested.accuracy;

  const std::vector<float> trained_outputs =
      compute_outputs(model, photos.validation.images, task.input).to_vector<float>();
  result.file_agrees =
      same_outputs(trained_outputs,
                   compute_outputs(*loaded.module, photos.validation.images, task.input).to_vector<float>());
  attribute_step_time(task, steps_ms, result);
  const double accounted_ms = std::accumulate(result.phase_ms.begin(), result.phase_ms.end(), 0.0);
  result[FlowPhase::other] = std::max(0.0, result.total_ms - accounted_ms);
  return result;
}

StudyReport study_plates(const StudyOptions& options) {
  const InitialWeights weights = weights_of(options);
  PlatesFlow flow{.pretrained = weights.file, .seed = options.seed};
  if (options.quick) flow.epochs = 3, flow.test_images = 40;
  if (options.epochs > 0) flow.epochs = options.epochs;
  const std::vector<Device> devices = options.devices.empty() ? all_devices() : options.devices;
  if (!flow.pretrained.empty()) {  // report unsuitable weights before rendering
    ResNet model({.depth = 18, .classes = 2});
    load_weights(model, flow.pretrained);
  }
  const TemporaryFolder folder;
  StudyProgress progress(options);
  progress.report("rendering the plates");
  const Stopwatch watch;
  write_flow_plates(folder.path(), flow);
  const double render_ms = watch.elapsed_ms();
  const std::vector<FlowResult> results = run_on_devices(folder.path(), flow, devices, progress);
  StudyReport report{
      .study = "plates",
      .title = "Transfer learning on photographs of plates",
      .machine = report_facts(),
      .introduction = fmt::format(
          "{} rendered photographs of clean and dirty plates ({}×{}) are split into {} for "
          "training and {} for validation. ResNet-18 (initial weights: {}), frozen except for a new "
          "last layer, is trained on {}×{} crops for {} with batch size {} (Adam, "
          "learning rate 0.001, multiplied by 0.1 every 7 epochs) and validated after each. "
          "The model file is written, loaded again, and used to classify {} test plates. "
          "Times are for the whole flow; “an epoch” includes its validation, median over all "
          "epochs. “augment” is the time the steps waited for images; on the CPU, workers "
          "prepare them in parallel. “forward”, “backward” and “update” divide the step time, "
          "which processes several steps of the frozen layers at once, in the proportions of "
          "{} steps that were measured one by one. “other” is the rest: splitting the folder, "
          "making the network, writing and reading the model file. A GPU is initialized "
          "before the clock starts. Every device must give the same prediction as the first for at least "
          "{:.0f} % of the test plates, and the file must give the outputs of the trained "
          "model.",
          2 * flow.images_per_class, flow.photo_size, flow.photo_size, results.front().train,
          results.front().validation, weights.description, flow.image_size, flow.image_size,
          epochs_text(flow.epochs), flow.batch_size, flow.test_images, counted_steps,
          100 * (1 - max_differing_share)),
      .rows = plates_rows(results),
      .findings = plates_findings(results),
      .plots = plates_plots(results)};
  report.versions = {{"cpu", "the whole flow on all CPU cores"},
                     {"cuda", "decoding on the CPU, everything else on the GPU"}};
  if (flow.pretrained.empty())
    report.findings.push_back(
        "The frozen weights are random, so only the last layer, on random features, has learned anything. "
        "With the weights that tandem fetch resnet18 downloads, the accuracy is meaningful; the times are "
        "the same.");
  report.findings.push_back(
      fmt::format("Rendering the plates and writing their files took {}; that time is not included.",
                  format_number(render_ms, Unit::milliseconds)));
  for (std::string& finding : progress.findings()) report.findings.push_back(std::move(finding));
  if (cuda_device_count() == 0) report.findings.push_back("No GPU was measured: " + why_no_cuda() + ".");
  return report;
}

}  // namespace tandem
