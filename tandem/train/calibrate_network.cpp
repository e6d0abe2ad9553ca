#include "tandem/train/calibrate_network.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tandem/ops/matmul.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluator.h"

namespace tandem {
namespace {

using detail::CalibrationMethod;

// The values of all images that are compared, where compute() makes the features of a batch.
template <class F>
std::vector<float> compared_values(ResNet& network, const Tensor& images, const ImageInput& input,
                                   ComparedBy compared, const F& compute) {
  std::vector<float> all;
  for (std::int64_t begin = 0, batch = 0; begin < images.size(0); begin += batch) {
    batch = next_evaluation_batch(images.size(0) - begin, input, cpu_device);
    const Tensor features = compute(network_input(images.slice(0, begin, begin + batch), input, DType::f32));
    const std::vector<float> values =
        (compared == ComparedBy::logits ? network.head(features) : features).to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

double squared_difference(const std::vector<float>& one, const std::vector<float>& other) {
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double difference = static_cast<double>(one[i]) - static_cast<double>(other[i]);
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

CalibratedNetwork calibrate_network(ResNet& network, const Tensor& images, const ImageInput& input,
                                    const std::optional<CalibrationMethod>& method, ComparedBy compared) {
  const NoGrad no_grad;
  const MatmulPrecisionScope exact(MatmulPrecision::fp32);
  ResNetCalibration calibration(network);
  const std::vector<float> expected = compared_values(
      network, images, input, compared, [&](const Tensor& x) { return calibration.observe(x); });
  if (method) return {*method, calibration.quantize(*method)};
  CalibratedNetwork best;
  double least = std::numeric_limits<double>::infinity();
  for (const CalibrationMethod each :
       {CalibrationMethod::percentile, CalibrationMethod::entropy, CalibrationMethod::max}) {
    std::unique_ptr<QuantizedResNet> candidate = calibration.quantize(each);
    const double difference =
        squared_difference(compared_values(network, images, input, compared,
                                           [&](const Tensor& x) { return candidate->features(x); }),
                           expected);
    if (best.network && !(difference < least)) continue;
    best = {each, std::move(candidate)};
    least = difference;
  }
  return best;
}

}  // namespace tandem
