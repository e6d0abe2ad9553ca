#include "tandem/nn/init.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"

namespace tandem {
namespace {

struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape, const char* op) {
  check(shape.rank() >= 2, "[{}] expected weights of shape (out, in, …), got {}", op, shape.to_string());
  double kernel = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) kernel *= static_cast<double>(shape[axis]);
  return {static_cast<double>(shape[1]) * kernel, static_cast<double>(shape[0]) * kernel};
}

// The fan of an empty shape is 0.
double stddev_for(double fan) {
  return fan > 0 ? std::sqrt(2 / fan) : 0;
}

Tensor sample_uniform(const Shape& shape, double stddev, RandomOptions options) {
  const Device device = options.device;
  options.device = cpu_device;
  const double bound = std::sqrt(3.0) * stddev;
  return uniform(shape, -bound, bound, options).to(device);
}

Tensor sample_normal(const Shape& shape, double stddev, RandomOptions options) {
  const Device device = options.device;
  options.device = cpu_device;
  return normal(shape, 0, stddev, options).to(device);
}

double xavier_stddev(const Shape& shape, const char* op) {
  const Fans fans = fans_of(shape, op);
  return stddev_for(fans.in + fans.out);
}

}  // namespace

Tensor xavier_uniform(const Shape& shape, const RandomOptions& options) {
  return sample_uniform(shape, xavier_stddev(shape, "xavier_uniform"), options);
}

Tensor xavier_normal(const Shape& shape, const RandomOptions& options) {
  return sample_normal(shape, xavier_stddev(shape, "xavier_normal"), options);
}

Tensor he_uniform(const Shape& shape, const RandomOptions& options) {
  return sample_uniform(shape, stddev_for(fans_of(shape, "he_uniform").in), options);
}

Tensor he_normal(const Shape& shape, const RandomOptions& options) {
  return sample_normal(shape, stddev_for(fans_of(shape, "he_normal").in), options);
}

Tensor fan_in_uniform(const Shape& shape, const RandomOptions& options) {
  const double fan = fans_of(shape, "fan_in_uniform").in;
  return sample_uniform(shape, fan > 0 ? std::sqrt(1 / (3 * fan)) : 0, options);
}

Tensor with_identity_filters(const Tensor& weights) {
  check(weights.defined() && weights.rank() == 4 && weights.dtype() == DType::f32 &&
            weights.size(2) % 2 == 1 && weights.size(3) % 2 == 1,
        "[with_identity_filters] expected f32 weights (out, in, y, x) of odd kernel sizes, got {}",
        weights.defined() ? weights.shape().to_string() : "none");
  const std::int64_t in = weights.size(1), kernel = weights.size(2) * weights.size(3);
  std::vector<float> values = weights.to_vector<float>();
  for (std::int64_t i = 0; i < std::min(weights.size(0), in); ++i) {
    const auto filter = values.begin() + i * in * kernel;
    std::fill_n(filter, in * kernel, 0.0f);
    filter[i * kernel + kernel / 2] = 1;
  }
  return Tensor::from(values, weights.shape(), weights.device());
}

}  // namespace tandem
