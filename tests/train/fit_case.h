// A user's data set, module and options for the tests of fit().
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tandem/nn/dropout.h"
#include "tandem/nn/linear.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/cast.h"
#include "tandem/train/fit.h"
#include "tests/train/small_run.h"

namespace tandem {

// Gray images of 8×8 with a horizontal or a vertical bar.
class Bars : public Dataset {
 public:
  explicit Bars(std::int64_t count, std::int64_t first = 0) : count_(count), first_(first) {}

  std::int64_t size() const override { return count_; }
  std::int32_t label(std::int64_t index) const override {
    return index == bad_label_of ? 2 : static_cast<std::int32_t>((first_ + index) % 2);
  }
  std::vector<std::string> classes() const override { return class_names; }
  Image image(std::int64_t index) const override {
    if (index == throws_at) throw std::runtime_error("no such bar");
    const std::int64_t number = first_ + index, place = number / 2 % 8;
    Image image = make_image(side, side, 1);
    for (std::int64_t i = 0; i < 8; ++i) {
      image.at(number * 31 % 8, i) = static_cast<std::uint8_t>(number * 7 % 100);  // noise
      image.at(number % 2 == 0 ? place : i, number % 2 == 0 ? i : place) = 200;
    }
    return image;
  }

  std::vector<std::string> class_names{"horizontal", "vertical"};
  std::int64_t side = 8;
  std::int64_t throws_at = -1, bad_label_of = -1;

 private:
  std::int64_t count_, first_;
};

struct TinyNet : Module {
  explicit TinyNet(std::int64_t outputs = 2)
      : first(64, 12, {.random = {.seed = 5, .stream = 1}}),
        last(12, outputs, {.random = {.seed = 5, .stream = 2}}) {
    add_child("first", first);
    add_child("dropout", dropout);
    add_child("last", last);
  }
  Tensor forward(const Tensor& x) override { return last(dropout(relu(first(x.reshape({x.size(0), 64}))))); }
  Linear first, last;
  Dropout dropout{0.1, 7};
};

struct NoWeights : Module {
  Tensor forward(const Tensor& x) override { return x; }
};

using Values = std::vector<std::pair<std::string, std::vector<double>>>;

inline Values values_of(const NamedTensors& tensors) {
  Values all;
  for (const auto& [name, tensor] : tensors)
    all.emplace_back(name, cast(tensor, DType::f64).to_vector<double>());
  return all;
}

class FitCase : public testing::Test {
 protected:
  FitCase() {
    options_.epochs = 3;
    options_.batch_size = 10;
    options_.momentum = 0.9;
    options_.learning_rate = 0.02;
    options_.schedule = ScheduleKind::cosine;
    options_.transform = Transform::parse("shift -1 1");
    options_.workers = 2;
    options_.device = cpu_device;
  }

  TrainResult run(Module& model, const std::string& name, const FitCallbacks& callbacks = {}) {
    options_.run_folder = folder_ / name;
    return fit(model, train_, validation_, options_, callbacks);
  }
  std::string run_error(const Dataset& train, const Dataset& validation) {
    TinyNet model;
    options_.run_folder = folder_ / "error";
    const std::string text = error_text([&] { fit(model, train, validation, options_); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "error")) << text;
    return text;
  }
  std::string run_error() { return run_error(train_, validation_); }

  TempFolder folder_;
  FitOptions options_;
  Bars train_{60}, validation_{30, 1000};
};

}  // namespace tandem
