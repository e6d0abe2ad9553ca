// A module with a residual connection. It is saved to a model file and loaded again by its registered name.
#include <tandem/tandem.h>

#include <iostream>
#include <memory>

namespace td = tandem;

class ResidualMlp : public td::Module {
 public:
  explicit ResidualMlp(std::uint64_t seed)
      : first_(784, 64, {.random = {.seed = seed, .stream = 1}}),
        inner_(64, 64, {.random = {.seed = seed, .stream = 2}}),
        last_(64, 10, {.random = {.seed = seed, .stream = 3}}) {
    add_children({{"first", first_}, {"inner", inner_}, {"last", last_}});
  }
  td::Tensor forward(const td::Tensor& x) override {
    const td::Tensor hidden = td::relu(first_(td::flatten(x)));
    return last_(hidden + td::relu(inner_(hidden)));
  }

 private:
  td::Linear first_, inner_, last_;
};

int main() {
  td::register_model({.name = "residual_mlp",
                      .summary = "perceptron with a residual connection",
                      .make = [](const td::Architecture&, std::uint64_t seed) -> std::unique_ptr<td::Module> {
                        return std::make_unique<ResidualMlp>(seed);
                      }});
  const auto data = td::digits({.train = 2000, .test = 500});
  ResidualMlp model(1);
  const td::TrainResult result = td::fit(model, data.train, data.test,
                                         {.epochs = 3,
                                          .batch_size = 50,
                                          .learning_rate = 0.1,
                                          .run_folder = "own_module_run",
                                          .model_name = "residual_mlp"});
  td::Model loaded = td::load_model(result.folder / "best.safetensors");
  std::cout << "best epoch " << result.best_epoch << ", accuracy " << result.test_accuracy << ", loaded model '"
            << loaded.info.architecture.model << "' with " << loaded.info.classes.size() << " classes\n";
  return result.test_accuracy > 0.7 ? 0 : 1;
}
