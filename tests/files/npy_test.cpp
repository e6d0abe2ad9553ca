#include "tandem/files/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tandem/core/error.h"

namespace tandem {
namespace {

// As numpy.save writes them; NumPy pads the header to a multiple of 64 bytes.
TEST(Npy, Header_IsNumpys) {
  const std::string bytes = to_npy(Tensor::from(std::vector<float>{1, 2.5f, -3, 4, 5, 6}, {2, 3}));
  ASSERT_EQ(bytes.size(), 128 + 6 * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]), 118);
  EXPECT_EQ(bytes.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ), ");
  EXPECT_EQ(bytes[127], '\n');
  float values[6];
  std::memcpy(values, bytes.data() + 128, sizeof values);
  EXPECT_EQ(values[1], 2.5f);
  EXPECT_EQ(values[5], 6);
  for (std::int64_t columns : {0, 1, 7, 1000, 123456})
    EXPECT_EQ(to_npy(Tensor::from(std::vector<float>(static_cast<std::size_t>(columns)), {columns})).size(),
              128 + static_cast<std::size_t>(columns) * sizeof(float));
}

TEST(Csv, Values_AreRestoredFromTheirDigits) {
  EXPECT_EQ(to_csv(Tensor::from(std::vector<float>{0, -1.5f, 0.1f, 1e-8f, 16777216, 3}, {2, 3})),
            "0,-1.5,0.1\n1e-08,16777216,3\n");
  EXPECT_EQ(to_csv(Tensor::from(std::vector<float>{}, {0, 3})), "");
  EXPECT_EQ(to_csv(Tensor::from(std::vector<float>{7, 8}, {2, 1})), "7\n8\n");
}

TEST(Npy, OtherDtypes_Throw) {
  const Tensor whole = Tensor::from(std::vector<std::int32_t>{1}, {1, 1});
  EXPECT_THROW(to_npy(whole), Error);
  EXPECT_THROW(to_csv(whole), Error);
  EXPECT_THROW(to_csv(Tensor::from(std::vector<float>{1}, {1})), Error);
}

}  // namespace
}  // namespace tandem
