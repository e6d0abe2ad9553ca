#include "tandem/data/mnist.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tandem/files/idx.h"
#include "tests/files/archives.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

std::vector<std::uint8_t> counting(int count) {
  std::vector<std::uint8_t> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<std::uint8_t>(i));
  return values;
}

class Mnist : public testing::Test {
 protected:
  // `count` images of 4x5 whose pixels count upwards; labels 0, 1, 2, …
  void put(const std::string& part, int count, int label_count, int height = 4) {
    write_idx(path(part + "-images-idx3-ubyte"),
              Tensor::from(counting(count * height * 5), {count, height, 5}));
    write_idx(path(part + "-labels-idx1-ubyte"), Tensor::from(counting(label_count), {label_count}));
  }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string error_of(const std::string& name = "mnist") {
    return error_text([&] { load_mnist(name, folder_.path()); });
  }

  Mnist() {
    put("train", 10, 10);
    put("t10k", 3, 3);
  }
  TempFolder folder_;
};

TEST_F(Mnist, Load_GivesTrainAndTestWithClasses) {
  const DataSplit split = load_mnist("mnist", folder_.path());
  EXPECT_EQ(split.name, "mnist");
  EXPECT_EQ(split.train.images.shape(), (Shape{10, 4, 5, 1}));
  EXPECT_EQ(split.train.images.dtype(), DType::u8);
  EXPECT_EQ(split.train.images.to_vector<std::uint8_t>()[199], 199);
  EXPECT_EQ(split.test.images.shape(), (Shape{3, 4, 5, 1}));
  EXPECT_EQ(split.test.labels.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(split.train.classes[7], "7");
  const DataSplit fashion = load_mnist("fashion-mnist", folder_.path());
  EXPECT_EQ(fashion.test.classes.size(), 10u);
  EXPECT_EQ(fashion.test.classes[9], "Ankle boot");
}

TEST_F(Mnist, Load_FindsGzippedFiles) {
  const std::string bytes = get_bytes(path("t10k-images-idx3-ubyte"));
  std::filesystem::remove(path("t10k-images-idx3-ubyte"));
  put_bytes(path("t10k-images-idx3-ubyte.gz"), gzip(bytes));
  EXPECT_EQ(load_mnist("mnist", folder_.path()).test.count(), 3);
}

TEST_F(Mnist, Load_FilesThatDoNotMatch_Throws) {
  EXPECT_EQ(error_of("cifar"), "[mnist] expected mnist or fashion-mnist, got 'cifar'");
  put("t10k", 3, 2);
  EXPECT_EQ(error_of(), "[mnist] " + path("t10k-labels-idx1-ubyte").string() +
                            ": expected a label for each of the 3 images, got 2");
  put("t10k", 12, 12);
  EXPECT_EQ(error_of(), "[mnist] " + path("t10k-labels-idx1-ubyte").string() +
                            ": expected labels from 0 to 9, got 10 for image 10");
  put("t10k", 3, 3, 6);
  EXPECT_EQ(error_of(), "[mnist] " + folder_.path().string() +
                            ": expected train and test images of one size, got 4x5 and 6x5");
  put("t10k", 0, 0);
  EXPECT_EQ(error_of(), "[mnist] " + path("t10k-images-idx3-ubyte").string() +
                            ": expected u8 images of shape [count, height, width], got [0, 4, 5] of u8");
}

TEST_F(Mnist, Load_SwappedFiles_Throws) {
  std::filesystem::rename(path("train-images-idx3-ubyte"), path("x"));
  std::filesystem::rename(path("train-labels-idx1-ubyte"), path("train-images-idx3-ubyte"));
  EXPECT_EQ(error_of(), "[mnist] " + path("train-images-idx3-ubyte").string() +
                            ": expected u8 images of shape [count, height, width], got [10] of u8");
  std::filesystem::copy_file(path("x"), path("train-labels-idx1-ubyte"));
  std::filesystem::copy_file(path("x"), path("train-images-idx3-ubyte"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(error_of(), "[mnist] " + path("train-labels-idx1-ubyte").string() +
                            ": expected u8 labels of shape [count], got [10, 4, 5] of u8");
  std::filesystem::remove(path("train-labels-idx1-ubyte"));
  EXPECT_EQ(error_of(), "[idx] " + path("train-labels-idx1-ubyte").string() + ": no such file");
}

}  // namespace
}  // namespace tandem
