// A convolutional network trained twice: by a loop written by hand, then by fit().
#include <tandem/tandem.h>

#include <iostream>

namespace td = tandem;

struct Net : td::Module {
  td::Conv2d conv{1, 8, {.kernel = 3}};
  td::Linear hidden{8 * 13 * 13, 32}, output{32, 10};
  Net() { add_children({{"conv", conv}, {"hidden", hidden}, {"output", output}}); }
  td::Tensor forward(const td::Tensor& x) override {
    return output(td::relu(hidden(td::flatten(td::max_pool2d(td::relu(conv(x)), 2)))));
  }
};

int main() {
  const td::Device device = td::default_device();
  const auto data = td::digits({.train = 2000, .test = 500});  // or td::mnist(), td::fashion_mnist()
  td::DataLoader loader(data.train, {.batch_size = 50,
                                     .transform = td::Transform::parse("rotate -10 10, shift -2 2"),
                                     .workers = 2,
                                     .device = device});
  Net net;
  net.to(device);
  td::Adam optimizer(net.parameters(), {.lr = 2e-3});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    double loss_sum = 0;
    for (const td::Batch& batch : loader.epoch(epoch)) {
      optimizer.zero_grad();
      td::Tensor loss = td::cross_entropy(net(batch.images), batch.labels);
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>();
    }
    std::cout << "epoch " << epoch + 1 << " on " << device
              << ": mean loss " << loss_sum / static_cast<double>(loader.size()) << '\n';
  }
  const td::TrainResult result =
      td::fit(net, data.train, data.test, {.epochs = 2, .run_folder = "training_loop_run"});
  std::cout << "test accuracy after fit(): " << result.test_accuracy << '\n';
  return result.test_accuracy > 0.8 ? 0 : 1;
}
