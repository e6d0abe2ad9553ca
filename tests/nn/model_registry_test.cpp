#include "tandem/nn/model_registry.h"

#include <gtest/gtest.h>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/linear.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/tape.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(ModelRegistry, EveryModel_AcceptsItsSmallestImagesAndGivesOneLogitPerClass) {
  const NoGrad no_grad;
  for (const ModelRow& row : models().rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.summary.empty());
    EXPECT_GT(row.defaults.epochs * row.defaults.batch_size, 0);
    EXPECT_GT(row.defaults.learning_rate, 0);
    const Architecture architecture{.model = row.name, .layers = {12, 5, 3}, .channels = 3, .classes = 3};
    EXPECT_EQ(architecture.expects_flat_input(), row.flat_input);
    const auto model = make_model(architecture, 4);
    model->eval();
    const Tensor input = row.flat_input ? ones({2, 12}) : ones({2, row.min_side, row.min_side, 3});
    EXPECT_EQ((*model)(input).shape(), (Shape{2, 3}));
    // The seed gives the weights.
    const auto values = [](const Module& module) {
      return module.parameters().front().tensor.detach().to_vector<float>();
    };
    EXPECT_EQ(values(*make_model(architecture, 4)), values(*model));
    EXPECT_NE(values(*make_model(architecture, 5)), values(*model));
  }
}

TEST(ModelRegistry, UnknownModel_ErrorListsTheNames) {
  EXPECT_EQ(error_text([] { make_model({.model = "vgg"}); }),
            "[model] expected one of " + models().list() + ", got 'vgg'");
  EXPECT_EQ(models().list().find("mlp, cnn, resnet18, resnet34, resnet50"), 0u);
  EXPECT_FALSE((Architecture{.model = "vgg"}).expects_flat_input());
}

TEST(ModelRegistry, RegisteredModel_IsMadeByName) {
  struct Half : Linear {
    explicit Half(std::int64_t classes) : Linear(4, classes) {}
  };
  register_model(
      {.name = "half",
       .summary = "of this test",
       .make = [](const Architecture& a, std::uint64_t) { return std::make_unique<Half>(a.classes); },
       .flat_input = true});
  EXPECT_EQ(make_model({.model = "half", .classes = 6})->parameters().size(), 2u);
  EXPECT_TRUE((Architecture{.model = "half"}).expects_flat_input());
  EXPECT_EQ(error_text([] { register_model({.name = "half"}); }),
            "[model] expected a new name, got 'half', which is registered already");
}

TEST(ModelRegistry, RowThatMakesNothing_IsAnError) {
  register_model({.name = "nothing", .summary = "of this test"});
  EXPECT_EQ(error_text([] { make_model({.model = "nothing"}); }),
            "[model] expected make() of 'nothing' to return a network, got a null pointer");
}

TEST(Architecture, ToString_NamesWhatTheModelReads) {
  EXPECT_EQ((Architecture{.layers = {6, 4, 2}, .activation = Activation::tanh}).to_string(),
            "mlp 6,4,2 tanh");
  EXPECT_EQ((Architecture{.model = "resnet18", .classes = 2}).to_string(), "resnet18 with 2 classes");
}

}  // namespace
}  // namespace tandem
