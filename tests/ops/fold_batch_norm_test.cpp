#include "tandem/ops/conv/fold_batch_norm.h"

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class FoldBatchNormTest : public OpTest {
 protected:
  struct Norm {
    Tensor weight, bias, mean, variance;
    detail::BatchNormParameters parameters() const { return {weight, bias, mean, variance, 1e-3}; }
  };
  Norm norm(std::int64_t filters, DType from) const {
    return {random_tensor({filters}, from, device(), 2), random_tensor({filters}, from, device(), 3),
            random_tensor({filters}, from, device(), 4),
            random_tensor({filters}, from, device(), 5, 0.01, 3)};
  }
  // Compares with the formula, in f64.
  void expect_folded(const Tensor& weight, const Norm& norm) const {
    const detail::FoldedConv folded = detail::fold_batch_norm(weight, norm.parameters(), dtype());
    std::vector<double> weights = values_of(weight), shifts;
    const std::vector<double> gamma = values_of(norm.weight), beta = values_of(norm.bias),
                              mean = values_of(norm.mean), variance = values_of(norm.variance);
    const std::size_t size = gamma.empty() ? 0 : weights.size() / gamma.size();
    for (std::size_t f = 0; f < gamma.size(); ++f) {
      const double scale = gamma[f] / std::sqrt(variance[f] + 1e-3);
      shifts.push_back(beta[f] - mean[f] * scale);
      for (std::size_t i = 0; i < size; ++i) weights[f * size + i] *= scale;
    }
    EXPECT_EQ(folded.weight.shape(), weight.shape());
    EXPECT_EQ(folded.weight.dtype(), dtype());
    EXPECT_EQ(folded.weight.device(), device());
    EXPECT_EQ(folded.bias.dtype(), dtype() == DType::f64 ? DType::f64 : DType::f32);
    EXPECT_FALSE(folded.weight.requires_grad() || folded.bias.requires_grad());
    const bool f64 = weight.dtype() == DType::f64;
    expect_values(folded.weight, weights, f64 || dtype() == DType::bf16 ? tolerance() : 1e-5);
    expect_values(folded.bias, shifts, f64 && dtype() == DType::f64 ? 1e-12 : 1e-5);
  }
};

TEST_P(FoldBatchNormTest, AnyShape_EqualsFormula) {
  for (const DType from : {DType::f32, DType::f64})
    for (const Shape& shape :
         {Shape{1, 1, 1, 1}, Shape{3, 1, 2, 1}, Shape{5, 3, 3, 7}, Shape{64, 7, 7, 3}, Shape{33, 3, 3, 4},
          Shape{2, 5, 5, 301}, Shape{300, 1, 1, 8}, Shape{0, 3, 3, 4}, Shape{4, 3, 3, 0}})
      expect_folded(random_tensor(shape, from, device(), 1).set_requires_grad(), norm(shape[0], from));
}

TEST_P(FoldBatchNormTest, StridedAndUnalignedViews_EqualFormula) {
  const Norm strided{random_tensor({6, 2}, DType::f32, device(), 2).slice(1, 0, 1).reshape({6}),
                     random_tensor({9}, DType::f32, device(), 3).slice(0, 3, 9),
                     random_tensor({6}, DType::f32, device(), 4),
                     random_tensor({6}, DType::f32, device(), 5, 0.01, 3)};
  const Tensor weight = random_tensor({6, 4, 3, 2}, DType::f32, device(), 1);
  expect_folded(weight.permute({0, 2, 3, 1}), strided);
  // Contiguous, but not aligned to four numbers.
  expect_folded(random_tensor({7, 1, 1, 5}, DType::f32, device(), 1).slice(0, 1, 7), strided);
  expect_folded(
      random_tensor({6 * 16 + 1}, DType::f32, device(), 1).slice(0, 1, 6 * 16 + 1).reshape({6, 2, 2, 4}),
      strided);
}

INSTANTIATE_TEST_SUITE_P(Devices, FoldBatchNormTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

TEST(FoldBatchNorm, InvalidArguments_ThrowErrorThatNamesThem) {
  const auto of = [](const Shape& shape, DType dtype = DType::f32) { return Tensor::empty(shape, dtype); };
  const Tensor weight = of({4, 3, 3, 2}), four = of({4}), five = of({5});
  const auto error = [&](const Tensor& w, const Tensor& variance, DType dtype) {
    return error_text([&] { detail::fold_batch_norm(w, {four, four, four, variance, 0}, dtype); });
  };
  EXPECT_EQ(error(weight, five, DType::f32),
            "[fold_batch_norm] expected norm parameters of shape [4], got [5]");
  EXPECT_EQ(error(of({4, 9}), four, DType::f32),
            "[fold_batch_norm] expected weight (out, kernel y, kernel x, channels / groups), got [4, 9]");
  EXPECT_EQ(error(weight, four, DType::i32),
            "[fold_batch_norm] expected f32 or f64 and a floating dtype of images, got f32 and i32");
  EXPECT_EQ(error(weight, of({4}, DType::f64), DType::f32),
            "[fold_batch_norm] expected tensors of one dtype, got f32 and f64");
}

}  // namespace
}  // namespace tandem
