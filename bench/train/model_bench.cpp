// ResNet-18, on a GPU also ResNet-50, and the mobile networks on 224×224 photographs in images per second:
// training steps (SGD with momentum) and inference, on every device in every precision that it has; of
// ResNet-18 also training of the last layer only, on a GPU training as the only rank of a group, with
// buckets and NCCL; of ResNets inference in 8-bit integers.
// On the CPU cpu_ms is the CPU time of all threads per image, which holds beside other programs where the
// rate does not. bench/compare reads the names.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <ctime>
#include <string>

#include "tandem/device/stream.h"
#include "tandem/dist/nccl_library.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/nn/model_registry.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/engines/engine.h"

namespace tandem {
namespace {

constexpr std::int64_t side = 224, classes = 1000;

struct Precision {
  const char* name;
  MatmulPrecision products;
  DType images;
};

constexpr Precision precisions[] = {{"fp32", MatmulPrecision::fp32, DType::f32},
                                    {"tf32", MatmulPrecision::tf32, DType::f32},
                                    {"bf16", MatmulPrecision::bf16, DType::bf16}};

std::unique_ptr<Module> network(const std::string& name) {
  return make_model({.model = name, .channels = 3, .classes = classes});
}

// Images per second, and on the CPU the CPU time per image.
class Rate {
 public:
  void report(benchmark::State& state, Device device, std::int64_t images) const {
    state.SetItemsProcessed(images);
    const double cpu_ms = static_cast<double>(std::clock() - start_) * 1e3 / CLOCKS_PER_SEC;
    if (!device.is_cuda()) state.counters["cpu_ms"] = cpu_ms / static_cast<double>(images);
  }

 private:
  std::clock_t start_ = std::clock();
};

void train(benchmark::State& state, const std::string& name, Device device, const Precision& precision,
           bool frozen, Group* group = nullptr) {
  const std::int64_t batch = state.range(0), steps = device.is_cuda() ? 20 : 2;
  ImageSet images;
  images.images =
      random_integers({2 * batch, side, side, 3}, 0, 256, {.seed = 1, .dtype = DType::u8, .device = device});
  images.labels =
      random_integers({2 * batch}, 0, classes, {.seed = 2, .dtype = DType::i32, .device = device});
  images.classes.resize(classes);
  const std::unique_ptr<Module> made = network(name);
  auto& model = dynamic_cast<BackboneModel&>(*made);
  if (frozen) model.freeze_backbone();
  model.to(device);
  NamedTensors parameters;
  for (const NamedTensor& each : model.parameters())
    if (each.tensor.requires_grad()) parameters.push_back(each);
  FusedOptimizer optimizer(parameters, {.momentum = 0.9}, 1e-4);
  InMemorySource source(images, {.samples = 2 * batch, .batch_size = batch, .batches_per_epoch = steps});
  const TrainingTask task{
      .model = model,
      .optimizer = optimizer,
      .source = source,
      .precision = precision.products,
      .input = {.flat = false, .height = side, .width = side, .channels = 3, .norm = imagenet_norm},
      .group = group};
  const auto engine = make_engine(task);
  engine->run(0, 0, device.is_cuda() ? 6 : 1);
  std::int64_t done = 0;
  const Rate rate;
  for (auto _ : state) done += engine->run(1, 0, steps).samples;
  rate.report(state, device, done);
}

void infer_with(benchmark::State& state, Module& model, Device device, DType dtype) {
  const std::int64_t batch = state.range(0), rounds = device.is_cuda() ? 20 : 2;
  const Tensor images = normal({batch, side, side, 3}, 0, 1, {.seed = 1, .dtype = dtype, .device = device});
  for (int i = 0; i < 3; ++i) model.forward(images);
  current_stream(device).synchronize();
  std::int64_t done = 0;
  const Rate rate;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < rounds; ++i) model.forward(images);
    current_stream(device).synchronize();
    done += rounds * batch;
  }
  rate.report(state, device, done);
}

void infer(benchmark::State& state, const std::string& name, Device device, const Precision& precision) {
  const std::unique_ptr<Module> model = network(name);
  model->to(device);
  model->eval();
  const NoGrad no_grad;
  const MatmulPrecisionScope scope(precision.products);
  infer_with(state, *model, device, precision.images);
}

void infer_int8(benchmark::State& state, int depth, Device device) {
  ResNet model({.depth = depth, .classes = classes});
  model.eval();
  const NoGrad no_grad;
  ResNetCalibration calibration(model);
  calibration.observe(normal({2, side, side, 3}, 0, 1, {.seed = 2}));
  const std::unique_ptr<QuantizedResNet> quantized = calibration.quantize(detail::CalibrationMethod::max);
  quantized->to(device);
  infer_with(state, *quantized, device, image_dtype(*quantized, MatmulPrecision::bf16));
}

template <class F>
void add(const std::string& model, const char* what, Device device, const char* precision, F f) {
  const std::string name = fmt::format("{}/{}/{}/{}", model, what, device.to_string(), precision);
  auto* const added = benchmark::RegisterBenchmark(name.c_str(), f);
  added->UseRealTime()->Unit(benchmark::kMillisecond)->Arg(8);
  if (device.is_cuda())
    added->Arg(256);
  else if (model == "resnet18")
    added->Arg(32);
}

void register_all() {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const Device device : devices)
    for (const Precision& precision : precisions) {
      const bool is_bf16 = precision.products == MatmulPrecision::bf16;
      if (!device.is_cuda() && precision.products == MatmulPrecision::tf32) continue;
      for (const std::string model :
           {"resnet18", "resnet50", "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0"}) {
        if (!device.is_cuda() && model == "resnet50") continue;
        add(model, "train", device, precision.name,
            [=](benchmark::State& state) { train(state, model, device, precision, false); });
        add(model, "infer", device, precision.name,
            [=](benchmark::State& state) { infer(state, model, device, precision); });
      }
      if (!device.is_cuda() && is_bf16) continue;
      const std::string resnet = "resnet18";
      add(resnet, "train head", device, precision.name,
          [=](benchmark::State& state) { train(state, resnet, device, precision, true); });
      if (device.is_cuda() && missing_nccl().empty())
        add(resnet, "train one rank", device, precision.name, [=](benchmark::State& state) {
          const auto group = solo_group();
          train(state, resnet, device, precision, false, group.get());
        });
    }
  for (const Device device : devices)
    for (const int depth : {18, 50})
      if (device.is_cuda() || depth == 18)
        add(fmt::format("resnet{}", depth), "infer", device, "int8",
            [=](benchmark::State& state) { infer_int8(state, depth, device); });
}

const bool registered = (register_all(), true);

}  // namespace
}  // namespace tandem
