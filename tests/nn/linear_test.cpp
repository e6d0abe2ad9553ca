#include "tandem/nn/linear.h"

#include "tandem/ops/fill.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

TEST(Linear, LayoutAndNames_ArePyTorchs) {
  Linear layer(3, 2);
  EXPECT_EQ(layer.weight().shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of(layer.bias()), (std::vector<double>{0, 0}));
  layer.load_state_dict({{"weight", tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, DType::f32)},
                         {"bias", tensor_of({10, 20}, {2}, DType::f32)}});
  EXPECT_EQ(values_of(layer(tensor_of({1, 0, -1}, {1, 3}, DType::f32))), (std::vector<double>{8, 18}));
  Linear plain(3, 2, {.bias = false, .random = {.dtype = DType::f64}});
  EXPECT_FALSE(plain.bias().defined());
  EXPECT_EQ(plain.weight().dtype(), DType::f64);
  EXPECT_EQ(error_text([&] { layer(ones({4})); }),
            "[linear] expected x (n, in) and weight (out, in), got [4] and [2, 3]");
  EXPECT_EQ(error_text([] { Linear(0, 2); }), "[linear] expected sizes of 1 or more, got 0 and 2");
}

}  // namespace
}  // namespace tandem
