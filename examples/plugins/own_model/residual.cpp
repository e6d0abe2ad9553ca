// A model of your own: a small convolutional network with a skip connection.
//
//     tandem train digits --with residual.cpp --model residual
//     tandem predict runs/digits-residual-1 image.png --with residual.cpp
//
// A plugin with a model is C++ and uses the headers of Tandem. It is linked with nothing: it uses the functions
// of the program that loads it.
#include <tandem/model_plugin.h>

#include <memory>

namespace td = tandem;

namespace {

// Each layer starts with random numbers of its own: another stream of the same seed.
td::Conv2dLayerOptions convolution(std::uint64_t seed, std::uint64_t stream) {
  return {.kernel = {3, 3}, .window = {.padding = {1, 1}}, .random = {.seed = seed, .stream = stream}};
}

// Images (n, height, width, channels) in, one value per class out. The names of the layers are those of the
// weights in the model file.
class Network : public td::Module {
 public:
  Network(std::int64_t channels, std::int64_t classes, std::uint64_t seed)
      : first_(channels, 16, convolution(seed, 1)),
        inner_(16, 16, convolution(seed, 2)),
        last_(16 * 4 * 4, classes, {.random = {.seed = seed, .stream = 3}}) {
    add_children({{"first", first_}, {"inner", inner_}, {"last", last_}});
  }

  td::Tensor forward(const td::Tensor& x) override {
    const td::Tensor y = td::max_pool2d(td::relu(first_(x)), {2, 2});
    const td::Tensor sum = y + td::relu(inner_(y));
    return last_(td::flatten(td::adaptive_avg_pool2d(sum, {4, 4})));  // any size of images becomes 4 x 4
  }

 private:
  td::Conv2d first_, inner_;
  td::Linear last_;
};

}  // namespace

int tandem_plugin_version() {
  return TANDEM_PLUGIN_VERSION;
}

void tandem_register() {
  td::register_model(
      {.name = "residual",  // as in --model residual
       .summary = "two convolutions with a skip connection",
       .make = [](const td::Architecture& of, std::uint64_t seed) -> std::unique_ptr<td::Module> {
         return std::make_unique<Network>(of.channels, of.classes, seed);
       },
       .min_side = 8,  // height and width of the smallest image
       .defaults = {.epochs = 5, .batch_size = 32, .optimizer = "adam", .learning_rate = 3e-3}});
}
