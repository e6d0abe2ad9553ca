#include "tandem/train/low_precision_features.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/matmul.h"
#include "tandem/text/format_number.h"
#include "tandem/train/calibrate_network.h"
#include "tandem/train/evaluation_mode.h"

namespace tandem {

LowPrecisionFeatures::LowPrecisionFeatures(BackboneModel& model, FeaturePrecision precision,
                                           const Tensor& images, const ImageInput& input)
    : model_(model) {
  expect(precision != FeaturePrecision::automatic);
  model.freeze_statistics();
  if (precision == FeaturePrecision::bf16) {
    description_ = "bf16";
    model.set_feature_function([&model](const Tensor& x) {
      const MatmulPrecisionScope scope(MatmulPrecision::bf16);
      return model.features(cast(x, DType::bf16));
    });
    return;
  }
  auto* const network = dynamic_cast<ResNet*>(&model);
  check(network != nullptr, "[train] feature_precision int8 requires a ResNet, got another model");
  const EvaluationMode mode(model);
  CalibratedNetwork calibrated =
      calibrate_network(*network, images, input, std::nullopt, ComparedBy::features);
  description_ = fmt::format("int8, ranges by {} of {} training images", name_of(calibrated.method),
                             format_count(images.size(0)));
  const std::shared_ptr<QuantizedResNet> integers = std::move(calibrated.network);
  model.set_feature_function([integers](const Tensor& x) { return integers->features(x); });
}

LowPrecisionFeatures::~LowPrecisionFeatures() {
  model_.set_feature_function({});
}

}  // namespace tandem
