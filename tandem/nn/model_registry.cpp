#include "tandem/nn/model_registry.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/nn/cnn.h"
#include "tandem/nn/efficientnet.h"
#include "tandem/nn/lenet.h"
#include "tandem/nn/mlp.h"
#include "tandem/nn/mobilenet_v3.h"
#include "tandem/nn/resnet.h"
#include "tandem/nn/whitened_cnn.h"

namespace tandem {
namespace {

std::unique_ptr<Module> mlp(const Architecture& architecture, std::uint64_t seed) {
  return make_mlp({.layers = architecture.layers,
                   .activation = architecture.activation,
                   .dropout = architecture.dropout,
                   .sigmoid_output = architecture.loss == LossKind::mse,
                   .seed = seed});
}

// Any class with options {.classes, .channels, .seed}.
template <class Model, class Options>
auto model_of_images(Options base) {
  return [base](const Architecture& architecture, std::uint64_t seed) {
    Options options = base;
    options.classes = architecture.classes;
    options.channels = architecture.channels;
    options.seed = seed;
    return std::make_unique<Model>(options);
  };
}

auto resnet(int depth) {
  return model_of_images<ResNet>(ResNetOptions{.depth = depth});
}

auto mobilenet_v3(bool large) {
  return model_of_images<MobileNetV3>(MobileNetV3Options{.large = large});
}

Registry<ModelRow>& table() {
  static const TrainingDefaults mlp_defaults{
      .epochs = 15, .batch_size = 16, .optimizer = "sgd", .learning_rate = 0.5};
  static const TrainingDefaults photo_defaults{.epochs = 25, .batch_size = 32};
  static Registry<ModelRow> rows("model",
                                 {
                                     {.name = "mlp",
                                      .summary = "multi-layer perceptron",
                                      .make = mlp,
                                      .flat_input = true,
                                      .min_side = 1,
                                      .defaults = mlp_defaults},
                                     {.name = "cnn",
                                      .summary = "six 3x3 convolutions with batch norm",
                                      .make = model_of_images<Cnn>(CnnOptions{})},
                                     {.name = "resnet18",
                                      .summary = "residual network of 18 layers",
                                      .make = resnet(18),
                                      .defaults = photo_defaults},
                                     {.name = "resnet34",
                                      .summary = "residual network of 34 layers",
                                      .make = resnet(34),
                                      .defaults = photo_defaults},
                                     {.name = "resnet50",
                                      .summary = "residual network of 50 layers",
                                      .make = resnet(50),
                                      .defaults = photo_defaults},
                                     {.name = "mobilenet_v3_small",
                                      .summary = "MobileNetV3, 2.5 million weights",
                                      .make = mobilenet_v3(false),
                                      .defaults = photo_defaults},
                                     {.name = "mobilenet_v3_large",
                                      .summary = "MobileNetV3, 5.5 million weights",
                                      .make = mobilenet_v3(true),
                                      .defaults = photo_defaults},
                                     {.name = "efficientnet_b0",
                                      .summary = "EfficientNet-B0, 5.3 million weights",
                                      .make = model_of_images<EfficientNet>(EfficientNetOptions{}),
                                      .defaults = photo_defaults},
                                     {.name = "lenet",
                                      .summary = "LeNet-5: two convolutions and three linear layers",
                                      .make = model_of_images<LeNet>(LeNetOptions{}),
                                      .min_side = 12},
                                     {.name = "whitened_cnn",
                                      .summary = "six 3x3 convolutions behind a fixed whitening layer",
                                      .make = model_of_images<WhitenedCnn>(WhitenedCnnOptions{}),
                                      .min_side = 25,
                                      .normalized = true},
                                 });
  return rows;
}

}  // namespace

const Registry<ModelRow>& models() {
  return table();
}

void register_model(ModelRow row) {
  table().add(std::move(row));
}

std::unique_ptr<Module> make_model(const Architecture& architecture, std::uint64_t seed) {
  const ModelRow& row = models().get(architecture.model);
  std::unique_ptr<Module> model = row.make ? row.make(architecture, seed) : nullptr;
  check(model != nullptr, "[model] expected make() of '{}' to return a network, got a null pointer",
        architecture.model);
  return model;
}

}  // namespace tandem
