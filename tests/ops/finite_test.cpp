#include "tandem/ops/finite.h"

#include <limits>

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

bool one_finite(const Tensor& tensor) {
  return all_finite({&tensor, 1});
}

// A tensor of ones except for one value.
Tensor with_value(std::int64_t count, std::int64_t position, double value, DType dtype, Device device) {
  std::vector<double> values(static_cast<std::size_t>(count), 1);
  values[static_cast<std::size_t>(position)] = value;
  return tensor_of(values, {count}, dtype, device);
}

class FiniteTest : public OpTest {};

TEST_P(FiniteTest, NanOrInfinityAnywhere_IsFound) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const std::int64_t count : {1, 2, 7, 8, 9, 33, 257, 32769, 300001}) {
    EXPECT_TRUE(one_finite(with_value(count, 0, -3, dtype(), device()))) << count;
    for (const std::int64_t position : {std::int64_t{0}, count / 2, count - 1})
      for (const double bad : {infinity, -infinity, std::nan("")})
        EXPECT_FALSE(one_finite(with_value(count, position, bad, dtype(), device())))
            << bad << " at " << position << " of " << count;
  }
}

TEST_P(FiniteTest, ExtremeValues_AreFinite) {
  const double max = dtype() == DType::f64   ? std::numeric_limits<double>::max()
                     : dtype() == DType::f32 ? std::numeric_limits<float>::max()
                                             : 3.38e38;
  const double min = dtype() == DType::f64 ? 5e-324 : 1e-40;
  EXPECT_TRUE(one_finite(tensor_of({max, -max, min, -min, 0.0, -0.0}, {6}, dtype(), device())));
}

TEST_P(FiniteTest, View_ChecksOnlyItsElements) {
  const Tensor whole = with_value(35, 3 * 5 + 2, std::nan(""), dtype(), device()).reshape({7, 5});
  EXPECT_FALSE(one_finite(whole.transpose()));
  EXPECT_FALSE(one_finite(whole.slice(0, 3, 4)));  // not aligned to 16 bytes
  EXPECT_FALSE(one_finite(whole.slice(1, 2, 3)));
  EXPECT_TRUE(one_finite(whole.slice(0, 4, 7)));
  EXPECT_TRUE(one_finite(whole.slice(1, 0, 2)));
}

TEST_P(FiniteTest, ManyTensors_OneBadIsFound) {
  constexpr std::size_t count = 300;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i)
    tensors.push_back(
        random_tensor({static_cast<std::int64_t>(i % 50)}, dtype(), device(), static_cast<unsigned>(i)));
  EXPECT_TRUE(all_finite(tensors));
  for (const std::size_t i : {0u, 159u, 160u, 170u, 299u}) {
    const Tensor good = tensors[i];
    tensors[i] = with_value(20, 19, std::nan(""), dtype(), device());
    EXPECT_FALSE(all_finite(tensors)) << i;
    tensors[i] = good;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, FiniteTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class FiniteOnDevice : public testing::TestWithParam<Device> {};

TEST_P(FiniteOnDevice, NoTensorsOrIntegers_AreFinite) {
  EXPECT_TRUE(all_finite({}));
  const std::vector<Tensor> tensors{
      tensor_of({}, {0}, DType::f32, GetParam()), tensor_of({-1, 2147483647}, {2}, DType::i32, GetParam()),
      tensor_of({-1}, {1}, DType::i64, GetParam()), tensor_of({255}, {1}, DType::u8, GetParam())};
  EXPECT_TRUE(all_finite(tensors));
}

TEST_P(FiniteOnDevice, MixedDtypes_AreChecked) {
  for (const DType bad : {DType::f32, DType::f64, DType::bf16}) {
    std::vector<Tensor> tensors;
    for (const DType dtype : {DType::bf16, DType::i64, DType::f64, DType::f32})
      tensors.push_back(tensor_of({1, 2, 3}, {3}, dtype, GetParam()));
    EXPECT_TRUE(all_finite(tensors));
    tensors.push_back(with_value(3, 1, -std::numeric_limits<double>::infinity(), bad, GetParam()));
    EXPECT_FALSE(all_finite(tensors)) << name_of(bad);
  }
}

TEST_P(FiniteOnDevice, EmptyTensorOrMixedDevices_Throws) {
  const Tensor one = tensor_of({1}, {1}, DType::f32, GetParam());
  const std::vector<Tensor> tensors{one, Tensor()};
  EXPECT_EQ(error_text([&] { all_finite(tensors); }), "[all_finite] expected a tensor, got an undefined one");
  if (!GetParam().is_cuda()) return;
  const std::vector<Tensor> two_devices{one, one.cpu()};
  EXPECT_EQ(error_text([&] { all_finite(two_devices); }),
            "[all_finite] expected all tensors on the same device, got cuda:0 and cpu");
}

INSTANTIATE_TEST_SUITE_P(Devices, FiniteOnDevice, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
