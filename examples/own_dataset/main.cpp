// A data set of your own: gray squares and disks. It works with thread workers as it is, and with process
// workers because a registered factory can make it again in each of them.
#include <tandem/tandem.h>

#include <iostream>
#include <memory>

namespace td = tandem;

class Shapes : public td::Dataset {
 public:
  explicit Shapes(std::int64_t count) : count_(count) {}

  std::int64_t size() const override { return count_; }
  std::int32_t label(std::int64_t index) const override { return static_cast<std::int32_t>(index % 2); }
  std::vector<std::string> classes() const override { return {"square", "disk"}; }

  td::Image image(std::int64_t index) const override {  // called by several workers at once
    td::Image image = td::make_image(28, 28, 1);
    const std::int64_t radius = 5 + index / 2 % 6, row = 9 + index / 3 % 9, column = 9 + index / 5 % 9;
    for (std::int64_t y = 0; y < 28; ++y)
      for (std::int64_t x = 0; x < 28; ++x) {
        const std::int64_t dy = y - row, dx = x - column;
        const bool inside = label(index) == 0 ? std::abs(dy) < radius && std::abs(dx) < radius
                                              : dy * dy + dx * dx < radius * radius;
        if (inside) image.at(y, x) = 255;
      }
    return image;
  }

  std::optional<td::DatasetFactoryCall> factory_call() const override {
    return td::DatasetFactoryCall{.name = "shapes", .argument = std::to_string(count_)};
  }

 private:
  std::int64_t count_;
};

int main(int argc, char** argv) {
  td::register_dataset_factory("shapes", [](const std::string& argument) -> std::unique_ptr<td::Dataset> {
    return std::make_unique<Shapes>(std::stoll(argument));
  });
  if (const auto status = td::run_worker_if_asked(argc, argv)) return *status;  // this process is a worker

  const Shapes train(2000), test(200);
  double sums[2] = {};
  for (const td::WorkerKind kind : {td::WorkerKind::thread, td::WorkerKind::process}) {
    td::DataLoader loader(train, {.batch_size = 100,
                                  .transform = td::Transform::parse("shift -2 2, noise 0 0.1"),
                                  .workers = 2,
                                  .worker_kind = kind});
    for (const td::Batch& batch : loader.epoch(0))
      sums[kind == td::WorkerKind::process] += td::sum(batch.images).item<double>();
  }
  std::cout << "sum of pixels with threads " << sums[0] << ", with processes " << sums[1] << '\n';

  td::Sequential model(td::Flatten(), td::Linear(784, 32), td::ReLU(), td::Linear(32, 2));
  const td::TrainResult result = td::fit(model, train, test, {.epochs = 4, .run_folder = "own_dataset_run"});
  std::cout << "test accuracy " << result.test_accuracy << '\n';
  return sums[0] == sums[1] && result.test_accuracy > 0.8 ? 0 : 1;
}
