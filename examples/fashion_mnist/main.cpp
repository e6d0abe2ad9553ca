// The program of the design document: Fashion-MNIST, which `tandem fetch fashion-mnist` puts into the cache.
#include <tandem/tandem.h>
namespace td = tandem;

struct Net : td::Module {
  td::Conv2d conv{1, 32, {.kernel = 3}};
  td::Linear hidden{32 * 13 * 13, 128}, output{128, 10};
  Net() { add_children({{"conv", conv}, {"hidden", hidden}, {"output", output}}); }
  td::Tensor forward(const td::Tensor& x) override {
    return output(td::relu(hidden(td::flatten(td::max_pool2d(td::relu(conv(x)), 2)))));
  }
};

int main() {
  const td::Device device = td::default_device();
  const auto data = td::fashion_mnist();                        // train and test, any td::Dataset works
  td::DataLoader loader(data.train, {.batch_size = 64, .transform = td::Transform::parse("rotate -10 10, shift -2 2"), .workers = 4, .device = device});
  Net net;
  net.to(device);
  td::Adam optimizer(net.parameters(), {.lr = 1e-3});
  for (std::int64_t epoch = 0; epoch < 5; ++epoch)
    for (const td::Batch& batch : loader.epoch(epoch)) {        // tensors on `device`, prefetched
      optimizer.zero_grad();
      td::backward(td::cross_entropy(net(batch.images), batch.labels));
      optimizer.step();
    }
  td::fit(net, data.train, data.test, {.epochs = 5, .run_folder = "runs/mine"});   // or all of it in one call
}
