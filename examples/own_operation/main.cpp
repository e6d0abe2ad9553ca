// Checks the operation and its gradient against its definition on every device there is.
#include <cmath>
#include <iostream>

#include "softplus.h"

namespace td = tandem;

int main() {
  double max_error = 0;
  for (const td::Device device : td::all_devices()) {
    td::Tensor x = td::Tensor({-30.0, -2.0, 0.0, 0.5, 40.0}).to(device);
    x.set_requires_grad();
    const td::Tensor y = softplus(x);
    td::sum(y).backward();
    const auto values = x.to_vector<float>(), results = y.to_vector<float>(), gradients = x.grad().to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double v = values[i], expected = std::fmax(v, 0) + std::log1p(std::exp(-std::fabs(v)));
      max_error = std::fmax(max_error, std::fabs(results[i] - expected));
      max_error = std::fmax(max_error, std::fabs(gradients[i] - 1 / (1 + std::exp(-v))));
    }
    std::cout << device << ": softplus(" << x << ") = " << y << '\n';
  }
  std::cout << "largest error " << max_error << '\n';
  return max_error < 1e-5 ? 0 : 1;
}
