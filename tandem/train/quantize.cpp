#include "tandem/train/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/report/interval.h"
#include "tandem/tensor/tape.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"
#include "tandem/train/calibrate_network.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/fit_decision.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/training_data.h"

namespace tandem {
namespace {

using detail::CalibrationMethod;

struct QuantizationData {
  Tensor calibration;  // u8 images
  ImageSet test;
};

// Evenly chosen, because a data set may be sorted.
Tensor evenly_chosen(const Tensor& images, std::int64_t count) {
  const std::int64_t all = images.size(0), used = std::min(count, all);
  std::vector<std::int64_t> sizes{used};
  for (std::size_t i = 1; i < static_cast<std::size_t>(images.rank()); ++i)
    sizes.push_back(images.size(static_cast<int>(i)));
  Tensor chosen = Tensor::empty(Shape(std::span<const std::int64_t>(sizes)), images.dtype());
  const Tensor from = images.contiguous();
  const std::int64_t bytes = all == 0 ? 0 : from.numel() / all;
  for (std::int64_t i = 0; i < used; ++i)
    std::copy_n(from.data<std::uint8_t>() + i * all / used * bytes, bytes,
                chosen.data<std::uint8_t>() + i * bytes);
  return chosen;
}

void check_images(const Tensor& images, const ModelInfo& info, const std::string& data) {
  check(images.rank() == 4 && images.size(0) > 0, "[quantize] expected images in {}, got none",
        one_line(data));
  check(images.size(1) == info.height && images.size(2) == info.width && images.size(3) == info.channels,
        "[quantize] expected images of {}x{} with {} channels, as the model's, got {}x{} with {} in {}",
        info.height, info.width, info.channels, images.size(1), images.size(2), images.size(3),
        one_line(data));
}

QuantizationData load_data(const ModelInfo& info, const std::string& data, const QuantizeOptions& options) {
  QuantizationData loaded;
  if (info.expects_photos()) {
    loaded.calibration = load_calibration_photos(data, info, options.images).images.images;
    loaded.test = load_test_photos(data, info, true).images;
  } else {
    const DataSplit split = load_split(data, options.from, {}, std::max<std::int64_t>(options.images, 10));
    check_image_set(split.train, data);
    loaded.calibration = evenly_chosen(split.train.images, options.images);
    loaded.test = split.test;
  }
  check_image_set(loaded.test, data);
  check_images(loaded.calibration, info, data);
  check_images(loaded.test.images, info, data);
  check(loaded.test.classes.size() == info.classes.size(),
        "[quantize] expected {} classes, as the model's, got {} in {}", info.classes.size(),
        loaded.test.classes.size(), one_line(data));
  return loaded;
}

Evaluation evaluate_decided(Module& network, const ImageSet& test, const ModelInfo& info) {
  const LossKind loss = info.architecture.loss;
  return apply_decision(evaluate(network, test, loss, info.input()), test.labels.to_vector<std::int32_t>(),
                        info.decision, loss);
}

}  // namespace

std::optional<CalibrationMethod> parse_calibration_method(const std::string& name) {
  if (name == "auto") return std::nullopt;
  for (const CalibrationMethod method :
       {CalibrationMethod::max, CalibrationMethod::percentile, CalibrationMethod::entropy})
    if (name == name_of(method)) return method;
  fail("[quantize] expected auto, percentile, entropy or max, got '{}'", one_line(name));
}

Model quantize_model(Model& model, const std::string& data, const QuantizeOptions& options) {
  const ModelInfo& info = model.info;
  check(!info.quantization, "[quantize] expected a model in floating point, got one in 8-bit integers");
  auto* const network = dynamic_cast<ResNet*>(model.module.get());
  check(network != nullptr, "[quantize] expected a ResNet (resnet18, resnet34, resnet50), got {}",
        info.architecture.model);
  check(options.images >= 1, "[quantize] expected at least 1 image, got {}", options.images);
  const QuantizationData images = load_data(info, data, options);
  const NoGrad no_grad;
  network->eval();
  const MatmulPrecisionScope exact(MatmulPrecision::fp32);
  CalibratedNetwork quantized =
      calibrate_network(*network, images.calibration, info.input(), options.method, ComparedBy::logits);
  const Evaluation before = evaluate_decided(*network, images.test, info),
                   after = evaluate_decided(*quantized.network, images.test, info);
  std::int64_t same = 0;
  for (std::size_t i = 0; i < before.predictions.size(); ++i)
    same += before.predictions[i] == after.predictions[i] ? 1 : 0;
  Model made{.info = info, .module = std::move(quantized.network)};
  made.info.accuracy = after.accuracy;
  made.info.quantization = {
      .method = std::string(name_of(quantized.method)),
      .calibration_images = images.calibration.size(0),
      .test_images = images.test.count(),
      .accuracy_before = before.accuracy,
      .accuracy_after = after.accuracy,
      .same_class = static_cast<double>(same) / static_cast<double>(images.test.count()),
      .data = data,
      .command = options.command};
  return made;
}

std::string quantization_text(const QuantizationInfo& quantization) {
  const std::int64_t images = quantization.test_images;
  return fmt::format(
      "Ranges: {}, {} training images\nAccuracy on {} test images: {} in fp32, {} in int8\nThe same class: "
      "{}\n",
      quantization.method, format_count(quantization.calibration_images), format_count(images),
      format_accuracy(quantization.accuracy_before, images),
      format_accuracy(quantization.accuracy_after, images), format_accuracy(quantization.same_class, images));
}

}  // namespace tandem
