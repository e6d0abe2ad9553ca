// The library as a user writes it, in training samples per second: `tandem train` with a perceptron beside
// fit() with the same network as an own Module, on every device; and, on a GPU, a loop over a DataLoader
// written by hand beside fit() for the CNN and ResNet-18. Compare with
// --benchmark_enable_random_interleaving=true.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tandem/tandem.h>

#include "tandem/train/options.h"
#include "tandem/train/trainer.h"

namespace {

namespace td = tandem;

struct OwnPerceptron : td::Module {
  td::Linear hidden{784, 256}, output{256, 10};
  OwnPerceptron() { add_children({{"hidden", hidden}, {"output", output}}); }
  td::Tensor forward(const td::Tensor& x) override { return output(td::relu(hidden(td::flatten(x)))); }
};

struct Case {
  const char* name = "";
  std::function<std::unique_ptr<td::Module>()> make_model;
  std::int64_t samples, side, channels, classes, batch_size;
  double learning_rate;
  td::MatmulPrecision precision;
};

td::ImageDataset random_images(const Case& work, std::int64_t count) {
  td::ImageSet set;
  set.images = td::random_integers({count, work.side, work.side, work.channels}, 0, 256,
                                   {.seed = 1, .dtype = td::DType::u8});
  set.labels = td::random_integers({count}, 0, work.classes, {.seed = 2, .dtype = td::DType::i32});
  for (std::int64_t i = 0; i < work.classes; ++i) set.classes.push_back(fmt::format("class {}", i));
  return td::ImageDataset(set);
}

// An iteration is a run of three epochs and counts as its last epoch: engines warm up in the first.
constexpr int epochs = 3;

// Times the last epoch of run(options) with a new run folder in each iteration.
template <typename Options>
void time_runs(benchmark::State& state, const Case& work, td::Device device, Options options,
               const std::function<td::TrainResult(const Options&)>& run) {
  options.epochs = epochs;
  options.batch_size = work.batch_size;
  options.learning_rate = work.learning_rate;
  options.workers = 0;
  options.device = device;
  options.precision = work.precision;
  options.run_folder = std::filesystem::temp_directory_path() / "tandem-fit-bench";
  for (auto _ : state) {
    std::filesystem::remove_all(options.run_folder);
    state.SetIterationTime(run(options).epochs.back().seconds);
  }
  std::filesystem::remove_all(options.run_folder);
  state.SetItemsProcessed(state.iterations() * work.samples);
}

void run_train(benchmark::State& state, const Case& work, td::Device device) {
  td::TrainOptions options;
  options.data = "digits";
  options.validation = 0;
  options.layers = {784, 256, 10};
  options.activation = td::Activation::relu;
  time_runs<td::TrainOptions>(state, work, device, options,
                              [](const td::TrainOptions& run) { return td::train(run); });
}

void run_fit(benchmark::State& state, const Case& work, td::Device device) {
  const td::ImageDataset train = random_images(work, work.samples), validation = random_images(work, 256);
  time_runs<td::FitOptions>(state, work, device, {}, [&](const td::FitOptions& options) {
    return td::fit(*work.make_model(), train, validation, options);
  });
}

void run_loop(benchmark::State& state, const Case& work, td::Device device) {
  const td::ImageDataset train = random_images(work, work.samples);
  const td::MatmulPrecisionScope precision(work.precision);
  for (auto _ : state) {
    const auto model = work.make_model();
    model->to(device);
    td::SGD optimizer(model->parameters(), {.lr = work.learning_rate});
    const td::DataLoader loader(train, {.batch_size = work.batch_size, .device = device});
    double seconds = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      td::current_stream(device).synchronize();
      const auto begin = std::chrono::steady_clock::now();
      for (const td::Batch& batch : loader.epoch(epoch)) {
        optimizer.zero_grad();
        td::backward(td::cross_entropy((*model)(batch.images), batch.labels));
        optimizer.step();
      }
      td::current_stream(device).synchronize();
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    state.SetIterationTime(seconds);
  }
  state.SetItemsProcessed(state.iterations() * work.samples);
}

void add(const std::string& name, void (*run)(benchmark::State&, const Case&, td::Device), Case work,
         td::Device device) {
  benchmark::RegisterBenchmark(name.c_str(), [run, work = std::move(work),
                                              device](benchmark::State& state) { run(state, work, device); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void register_all() {
  std::vector<td::Device> devices{td::cpu_device};
  if (td::cuda_device_count() > 0) devices.push_back(td::cuda_device());
  const Case perceptron{.make_model = [] { return std::make_unique<OwnPerceptron>(); },
                        .samples = 60000,
                        .side = 28,
                        .channels = 1,
                        .classes = 10,
                        .batch_size = 64,
                        .learning_rate = 0.01,
                        .precision = td::MatmulPrecision::fp32};
  for (const td::Device device : devices) {
    add("train/784,256,10/" + device.to_string() + "/built-in", run_train, perceptron, device);
    add("fit/784,256,10/" + device.to_string() + "/own-module", run_fit, perceptron, device);
  }
  if (!devices.back().is_cuda()) return;
  const auto cnn = [] { return std::make_unique<td::Cnn>(); };
  const auto resnet = [] { return std::make_unique<td::ResNet>(td::ResNetOptions{.classes = 10}); };
  const struct {
    const char* name;
    td::MatmulPrecision value;
  } precisions[] = {{"fp32", td::MatmulPrecision::fp32}, {"tf32", td::MatmulPrecision::tf32}};
  for (const auto& precision : precisions)
    for (const Case& work : {Case{"cnn", cnn, 16384, 28, 1, 10, 64, 0.01, precision.value},
                             Case{"resnet18", resnet, 1024, 224, 3, 10, 64, 0.001, precision.value}}) {
      const std::string name = fmt::format("{}/cuda:0/{}", work.name, precision.name);
      add("fit/" + name, run_fit, work, devices.back());
      add("loop/" + name, run_loop, work, devices.back());
    }
}

const bool registered = (register_all(), true);

}  // namespace
