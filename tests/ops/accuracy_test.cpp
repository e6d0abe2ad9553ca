#include "tandem/ops/accuracy.h"

#include "tandem/ops/compare.h"
#include "tandem/ops/fill.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class AccuracyOnDevice : public testing::TestWithParam<Device> {};

TEST_P(AccuracyOnDevice, CountsRowsWhoseMaximumIsTheLabel) {
  const Tensor logits = Tensor({{1., 3., 2.}, {5., 4., 0.}, {0., 0., 1.}, {2., 2., 1.}}).to(GetParam());
  for (DType dtype : {DType::i32, DType::i64}) {
    const Tensor labels({1, 1, 2, 0}, dtype, GetParam());  // of equal values the first counts
    EXPECT_EQ(accuracy(logits, labels), 0.75);
    expect_values(equal(argmax(logits, 1), labels), {1, 0, 1, 1}, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AccuracyOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Accuracy, BadInput_Throws) {
  const Tensor logits = ones({3, 2});
  EXPECT_EQ(error_text([&] { accuracy(logits, zeros({2}, DType::i64)); }),
            "[accuracy] expected logits (n, classes) and labels (n) with n above 0, got [3, 2] and [2]");
  EXPECT_EQ(error_text([&] { accuracy(logits, zeros({3})); }),
            "[accuracy] expected dtype i32 or i64, got f32");
  EXPECT_NE(error_text([] {
              accuracy(ones({0, 2}), zeros({0}, DType::i64));
            }).find("n above 0"),
            std::string::npos);
  EXPECT_EQ(error_text([&] { accuracy(logits, Tensor()); }),
            "[accuracy] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
