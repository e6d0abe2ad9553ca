// A step of contrastive pretraining: projection head, NT-Xent, LARS and the average of the weights together,
// captured as a graph on CUDA.
#include "tandem/device/graph_runner.h"
#include "tandem/nn/activation.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/sequential.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/nt_xent.h"
#include "tandem/ops/random.h"
#include "tandem/optim/lars.h"
#include "tandem/optim/weight_average.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class ContrastiveStep : public testing::TestWithParam<Device> {
 protected:
  // Two views of 64 vectors whose first 8 elements tell the images apart; the others are noise of each view.
  Tensor sample_views(std::uint64_t step) const {
    const RandomOptions random{.seed = 7, .device = GetParam()};
    const auto noise = [&](std::uint64_t stream, std::int64_t columns) {
      RandomOptions own = random;
      own.stream = 3 * step + stream;
      return normal({64, columns}, 0, 1, own);
    };
    const Tensor content = noise(0, 8);
    return concat({concat({content, noise(1, 24)}, 1), concat({content, noise(2, 24)}, 1)}, 0);
  }
};

TEST_P(ContrastiveStep, Captured_LearnsToFindThePartner) {
  const Device device = GetParam();
  const Stream stream(device);
  const StreamScope scope(stream);
  Sequential net(Linear(32, 64, {.bias = false, .random = {.seed = 1, .stream = 0}}), BatchNorm(64), ReLU(),
                 Linear(64, 16, {.random = {.seed = 1, .stream = 1}}));
  net.to(device);
  Lars optimizer(net.parameters(), {.lr = 1, .trust_coefficient = 0.02});
  WeightAverage average(net, 0.9);
  const Tensor input = Tensor::empty({128, 32}, DType::f32, device);
  const Tensor figures = Tensor::empty({2}, DType::f32, device);
  GraphRunner runner(device);
  std::vector<double> first, last;
  for (std::uint64_t step = 0; step < 60; ++step) {
    copy_into(input, sample_views(step));
    optimizer.prepare_step();
    runner.run([&] {
      const NtXentResult result = nt_xent_with_accuracy(net(input));
      backward(result.loss);
      optimizer.apply();
      optimizer.zero_grad();
      average.update();
      copy_into(figures.slice(0, 0, 1).reshape({}), result.loss.detach());
      copy_into(figures.slice(0, 1, 2).reshape({}), result.retrieval_accuracy);
    });
    if (step == 0) first = values_of(figures);
  }
  last = values_of(figures);
  EXPECT_LT(last[0], 0.7 * first[0]);
  EXPECT_GT(last[1], first[1] + 0.3);
  EXPECT_EQ(runner.captured(), device.is_cuda());

  Sequential averaged(Linear(32, 64, {.bias = false}), BatchNorm(64), ReLU(), Linear(64, 16));
  averaged.to(device);
  average.copy_to(averaged);
  averaged.eval();
  const NtXentResult of_average = nt_xent_with_accuracy(averaged(sample_views(1000)));
  EXPECT_GT(values_of(of_average.retrieval_accuracy)[0], first[1] + 0.3);
}

INSTANTIATE_TEST_SUITE_P(Devices, ContrastiveStep, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
