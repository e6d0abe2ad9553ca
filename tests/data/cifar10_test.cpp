#include "tandem/data/cifar10.h"

#include <gtest/gtest.h>

#include "tandem/data/dataset_registry.h"
#include "tests/files/archives.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

// A record whose pixel values tell channel and position apart.
std::string record(int label, int salt) {
  std::string bytes(1, static_cast<char>(label));
  for (int c = 0; c < 3; ++c)
    for (int p = 0; p < 1024; ++p) bytes += static_cast<char>((7 * p + 80 * c + salt) % 256);
  return bytes;
}

void put_batches(const std::filesystem::path& folder) {
  for (int i = 1; i <= 5; ++i)
    put_bytes(folder / ("data_batch_" + std::to_string(i) + ".bin"), record(i, i) + record(9 - i, 10 * i));
  put_bytes(folder / "test_batch.bin", record(0, 99) + record(9, 3) + record(4, 1));
}

TEST(Cifar10, Records_BecomeImagesWithInterleavedChannels) {
  const TempFolder folder;
  put_batches(folder.path());
  const DataSplit split = load_cifar10(folder.path());
  EXPECT_EQ(split.name, "cifar10");
  EXPECT_EQ(split.train.images.shape(), (Shape{10, 32, 32, 3}));
  EXPECT_EQ(split.test.images.shape(), (Shape{3, 32, 32, 3}));
  EXPECT_EQ(split.train.labels.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 8, 2, 7, 3, 6, 4, 5, 5, 4}));
  EXPECT_EQ(split.test.labels.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 9, 4}));
  EXPECT_EQ(split.train.classes.size(), 10u);
  EXPECT_EQ(split.train.classes[3], "cat");
  const std::vector<std::uint8_t> pixels = split.train.images.to_vector<std::uint8_t>();
  const int image = 3, salt = 20;  // the second record of data_batch_2.bin
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(pixels[static_cast<std::size_t>(((image * 32 + y) * 32 + x) * 3 + c)],
                  (7 * (32 * y + x) + 80 * c + salt) % 256)
            << y << " " << x << " " << c;
  check_image_set(split.train, "cifar10");
}

TEST(Cifar10, DamagedFiles_AreErrors) {
  const TempFolder folder;
  const auto error = [&] { return error_text([&] { load_cifar10(folder.path()); }); };
  put_batches(folder.path());
  const std::string path = (folder / "data_batch_4.bin").string();
  put_bytes(path, record(1, 1) + "x");
  EXPECT_EQ(error(), "[cifar10] " + path + ": expected records of 3073 bytes, got a file of 3074 bytes");
  put_bytes(path, "");
  EXPECT_EQ(error(), "[cifar10] " + path + ": expected records of 3073 bytes, got a file of 0 bytes");
  put_bytes(path, record(1, 1) + record(10, 1));
  EXPECT_EQ(error(), "[cifar10] " + path + ": expected labels from 0 to 9, got 10 for image 1");
  std::filesystem::remove(path);
  EXPECT_NE(error().find("data_batch_4.bin"), std::string::npos);
}

TEST(Cifar10, Source_NamesTheArchiveAndItsFiles) {
  const FetchSource source = cifar10_source();
  EXPECT_EQ(source.files.size(), 6u);
  for (const FetchFile& file : source.files) {
    EXPECT_EQ(file.size, 30730000u) << file.name;
    EXPECT_EQ(file.sha256.size(), 64u) << file.name;
  }
  EXPECT_EQ(fetch_source("cifar10").archive.sha256, source.archive.sha256);
  // Another archive is not accepted.
  const TempFolder folder;
  put_bytes(folder / "other.tgz",
            gzip(tar_entry("cifar-10-batches-bin/test_batch.bin", record(1, 1)) + tar_end()));
  const std::string text =
      error_text([&] { load_dataset("cifar10", {.from = folder / "other.tgz", .cache = folder / "cache"}); });
  EXPECT_NE(text.find("expected cifar-10-binary.tar.gz with SHA-256 c4a38c50"), std::string::npos) << text;
}

}  // namespace
}  // namespace tandem
