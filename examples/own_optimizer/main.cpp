// An optimizer of your own: the sign of the gradient gives the direction (signSGD with momentum).
#include <tandem/tandem.h>

#include <iostream>
#include <memory>

namespace td = tandem;

class SignSgd : public td::Optimizer {
 public:
  SignSgd(td::NamedTensors parameters, double lr, double momentum)
      : Optimizer(std::move(parameters), lr), momentum_(momentum) {
    for (const td::NamedTensor& parameter : this->parameters())
      add_state(parameter.name + ".velocity", td::zeros(parameter.tensor.shape(), parameter.tensor.device()));
  }

  // One parameter at a time; `states` are those of add_state(), in order.
  void update(std::size_t index, const td::Tensor& parameter, const td::Tensor& gradient) override {
    const td::NoGrad no_grad;
    td::Tensor velocity = state_tensor(index);
    velocity *= momentum_;
    velocity += gradient * (1 - momentum_);
    td::Tensor weights = parameter.detach();
    weights -= td::sign(velocity) * learning_rate();
  }

 private:
  double momentum_;
};

int main() {
  const auto data = td::digits({.train = 2000, .test = 500});
  td::Sequential model(td::Flatten(), td::Linear(784, 64), td::ReLU(), td::Linear(64, 10));
  const td::TrainResult result =
      td::fit(model, data.train, data.test,
              {.epochs = 3,
               .batch_size = 50,
               .learning_rate = 1e-3,
               .run_folder = "own_optimizer_run",
               .make_optimizer = [](td::NamedTensors parameters) -> std::unique_ptr<td::Optimizer> {
                 return std::make_unique<SignSgd>(std::move(parameters), 1e-3, 0.9);
               }});
  std::cout << "test accuracy " << result.test_accuracy << '\n';
  return result.test_accuracy > 0.6 ? 0 : 1;
}
