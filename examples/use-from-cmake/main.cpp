// The smallest project that uses Tandem: make a tensor, transpose it, catch an error.
#include <tandem/core/error.h>
#include <tandem/tensor/tensor.h>

#include <cstdio>
#include <vector>

int main() {
  const auto table = tandem::Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const auto transposed = table.transpose();
  std::printf("Tandem: %s on %s:", transposed.shape().to_string().c_str(), transposed.device().to_string().c_str());
  for (const float value : transposed.to_vector<float>()) std::printf(" %g", value);
  try {
    (void)table.reshape({4, 2});
  } catch (const tandem::Error& error) {
    std::printf("\nrefused: %s\n", error.what());
  }
}
