// Tensors of memory that is owned elsewhere.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tandem/ops/arithmetic.h"
#include "tandem/tensor/tensor.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(TensorBorrow, Elements_AreSharedAndTheOwnerIsKept) {
  auto values = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
  const std::weak_ptr<std::vector<float>> watched = values;
  float* const data = values->data();
  Tensor rows = Tensor::borrow(data, {2, 3}, {3, 1}, DType::f32, cpu_device, std::move(values));
  EXPECT_EQ(rows.data<float>(), data);
  Tensor column = rows.slice(1, 1, 2);
  rows = Tensor();
  EXPECT_EQ(column.to_vector<float>(), (std::vector<float>{2, 5}));
  data[4] = 7;
  EXPECT_EQ(add(column, column).to_vector<float>(), (std::vector<float>{4, 14}));
  EXPECT_FALSE(watched.expired());
  column = Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST(TensorBorrow, Strides_MayTransposeAndRepeat) {
  const auto values =
      std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  const auto tensor = [&](const Shape& shape, const Dims& strides) {
    return Tensor::borrow(values->data(), shape, strides, DType::i64, cpu_device, values);
  };
  EXPECT_EQ(tensor({3, 2}, {1, 3}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(tensor({2, 2}, {0, 1}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2, 1, 2}));
  EXPECT_EQ(error_text([&] { tensor({2}, {-1}); }),
            "[tensor] expected a stride of 0 or more for each axis of [2], got [-1]");
  EXPECT_EQ(error_text([&] {
              tensor({2}, {1, 1});
            }),
            "[tensor] expected a stride of 0 or more for each axis of [2], got [1, 1]");
  EXPECT_EQ(error_text([&] { Tensor::borrow(nullptr, {2}, {1}, DType::i64, cpu_device, values); }),
            "[tensor] expected elements, got a null pointer");
  EXPECT_EQ(error_text([&] { Tensor::borrow(values->data(), {2}, {1}, DType::i64, cpu_device, nullptr); }),
            "[tensor] expected an owner of borrowed elements, got none");
  EXPECT_EQ(Tensor::borrow(nullptr, {0, 3}, {3, 1}, DType::i64, cpu_device, values).numel(), 0);
}

}  // namespace
}  // namespace tandem
