#include "tandem/ops/flatten.h"

#include "tandem/ops/fill.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

TEST(Flatten, MergesAxesAndSharesMemory) {
  const Tensor x = random_tensor({2, 3, 4, 5}, DType::f32, cpu_device, 1);
  EXPECT_EQ(flatten(x).shape(), (Shape{2, 60}));
  EXPECT_EQ(flatten(x).bytes(), x.bytes());
  EXPECT_EQ(flatten(x, 0).shape(), (Shape{120}));
  EXPECT_EQ(flatten(x, 2).shape(), (Shape{2, 3, 20}));
  EXPECT_EQ(flatten(x, -1).shape(), x.shape());
  EXPECT_EQ(flatten(ones({2, 0, 3})).shape(), (Shape{2, 0}));
  EXPECT_EQ(values_of(flatten(x.transpose())), values_of(x.transpose()));
  EXPECT_EQ(x.reshape(-1).shape(), (Shape{120}));
}

TEST(Flatten, Gradient_HasTheShapeOfTheInput) {
  expect_gradients([](const auto& in) { return flatten(in[0]); },
                   {random_tensor({2, 3, 2}, DType::f64, cpu_device, 2)});
}

TEST(Flatten, NoSuchAxis_Throws) {
  EXPECT_EQ(error_text([] { flatten(ones({4})); }), "[flatten] expected an axis from -1 to 0, got 1");
  EXPECT_EQ(error_text([] { flatten(Tensor()); }), "[flatten] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
