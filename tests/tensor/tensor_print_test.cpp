#include <limits>
#include <numeric>
#include <sstream>

#include "tandem/ops/fill.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

template <class T>
std::string text_of(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

Tensor counting(const Shape& shape, DType dtype = DType::f32) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0);
  return tensor_of(values, shape, dtype);
}

TEST(Print, ScalarAndVector_ShowValuesShapeDtypeDevice) {
  EXPECT_EQ(text_of(full({}, 2.5)), "tensor(2.5, shape [], f32, cpu)");
  EXPECT_EQ(text_of(Tensor({1., -2.5, 3.})), "tensor([   1, -2.5,    3], shape [3], f32, cpu)");
  EXPECT_EQ(text_of(Tensor({0, 200}, DType::u8)), "tensor([  0, 200], shape [2], u8, cpu)");
  EXPECT_EQ(text_of(Tensor({0.5}, DType::bf16)), "tensor([0.5], shape [1], bf16, cpu)");
  EXPECT_EQ(text_of(Tensor({1.}).set_requires_grad()), "tensor([1], shape [1], f32, cpu, requires_grad)");
}

TEST(Print, SpecialValues_AreWords) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text_of(Tensor({inf, -inf, std::numeric_limits<double>::quiet_NaN(), 1e-20})),
            "tensor([  inf,  -inf,   nan, 1e-20], shape [4], f32, cpu)");
  const std::int64_t big = (std::int64_t{1} << 60) + 1;  // more digits than a double has
  EXPECT_EQ(text_of(Tensor::from(std::vector{big}, {})), "tensor(1152921504606846977, shape [], i64, cpu)");
}

TEST(Print, Matrix_HasOneLinePerRow) {
  EXPECT_EQ(text_of(Tensor({{1., -2.}, {3., 10.}})),
            "tensor([[ 1, -2],\n"
            "        [ 3, 10]], shape [2, 2], f32, cpu)");
  EXPECT_EQ(text_of(counting({2, 2, 2}, DType::i32)),
            "tensor([[[0, 1],\n"
            "         [2, 3]],\n\n"
            "        [[4, 5],\n"
            "         [6, 7]]], shape [2, 2, 2], i32, cpu)");
}

TEST(Print, StridedView_ShowsItsOwnElements) {
  EXPECT_EQ(text_of(counting({2, 3}).transpose()),
            "tensor([[0, 3],\n"
            "        [1, 4],\n"
            "        [2, 5]], shape [3, 2], f32, cpu)");
}

TEST(Print, LongTensor_IsShortened) {
  EXPECT_EQ(text_of(counting({1000})), "tensor([  0,   1,   2, …, 997, 998, 999], shape [1000], f32, cpu)");
  EXPECT_EQ(text_of(counting({100, 4})),
            "tensor([[  0,   1,   2,   3],\n"
            "        [  4,   5,   6,   7],\n"
            "        [  8,   9,  10,  11],\n"
            "        …,\n"
            "        [388, 389, 390, 391],\n"
            "        [392, 393, 394, 395],\n"
            "        [396, 397, 398, 399]], shape [100, 4], f32, cpu)");
  EXPECT_EQ(text_of(counting({2, 150}).transpose()[149]), "tensor([149, 299], shape [2], f32, cpu)");
  EXPECT_EQ(text_of(counting({2, 150})),
            "tensor([[  0,   1,   2, …, 147, 148, 149],\n"
            "        [150, 151, 152, …, 297, 298, 299]], shape [2, 150], f32, cpu)");
}

TEST(Print, EmptyAndUndefined_SaySo) {
  EXPECT_EQ(text_of(zeros({2, 0})), "tensor([], shape [2, 0], f32, cpu)");
  EXPECT_EQ(text_of(Tensor()), "tensor(undefined)");
}

TEST(Print, DeviceShapeAndDtype_AreTheirNames) {
  EXPECT_EQ(text_of(cpu_device), "cpu");
  EXPECT_EQ(text_of(cuda_device(1)), "cuda:1");
  EXPECT_EQ(text_of(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(text_of(Dims{}), "[]");
  EXPECT_EQ(text_of(DType::bf16), "bf16");
}

TEST(Print, AllDevices_StartsWithTheCpu) {
  const std::vector<Device> devices = all_devices();
  ASSERT_EQ(devices.size(), 1U + static_cast<std::size_t>(cuda_device_count()));
  EXPECT_EQ(devices[0], cpu_device);
  if (devices.size() > 1) {
    EXPECT_EQ(devices[1], cuda_device(0));
    EXPECT_EQ(text_of(Tensor({1., 2.}).to(devices[1])), "tensor([1, 2], shape [2], f32, cuda:0)");
    EXPECT_EQ(text_of(counting({1000}).to("cuda:0")),
              "tensor([  0,   1,   2, …, 997, 998, 999], shape [1000], f32, cuda:0)");
  }
}

}  // namespace
}  // namespace tandem
