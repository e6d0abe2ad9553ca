// The least a project outside Tandem does with it: make a tensor, look at it another way, meet an error.
#include <tandem/core/error.h>
#include <tandem/tensor/tensor.h>

#include <cstdio>
#include <vector>

int main() {
  const auto table = tandem::Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const auto turned = table.transpose();
  std::printf("Tandem: %s on %s:", turned.shape().to_string().c_str(), turned.device().to_string().c_str());
  for (const float value : turned.to_vector<float>()) std::printf(" %g", value);
  try {
    (void)table.reshape({4, 2});
  } catch (const tandem::Error& error) {
    std::printf("\nrefused: %s\n", error.what());
  }
}
