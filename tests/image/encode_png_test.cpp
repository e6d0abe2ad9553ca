#include "tandem/image/encode_png.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <random>

#include "tandem/image/decode.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

Image noise_image(int64_t height, int64_t width, int channels) {
  Image image = make_image(height, width, channels);
  std::mt19937 random(7);
  for (uint8_t& value : image.pixels) value = uint8_t(random());
  return image;
}

TEST(EncodePng, RoundTrips) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 7}, {7, 1}, {33, 65}, {300, 200}, {3, 5000}})
    for (const int channels : {1, 3}) {
      const Image image = noise_image(height, width, channels);
      EXPECT_EQ(decode_image(encode_png(image), "x"), image) << height << "x" << width << "x" << channels;
    }
}

TEST(EncodePng, RefusesAnEmptyImage) {
  EXPECT_NE(error_of([] { encode_png(make_image(0, 3, 1)); }).find("[encode_png] expected sides of 1"),
            std::string::npos);
}

TEST(SavePng, WritesAndReplaces) {
  const TempFolder folder;
  save_png(folder / "a.png", noise_image(9, 9, 3));
  const Image second = noise_image(4, 5, 1);
  save_png(folder / "a.png", second);
  EXPECT_EQ(load_image(folder / "a.png"), second);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(SavePng, FileIsAsReadableAsAnyOther) {
  const TempFolder folder;
  save_png(folder / "a.png", noise_image(2, 2, 1));
  put_bytes(folder / "b.txt", "x");
  EXPECT_EQ(std::filesystem::status(folder / "a.png").permissions(),
            std::filesystem::status(folder / "b.txt").permissions());
}

TEST(SavePng, FollowsLinks) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "real");
  put_bytes(folder / "real/a.png", "old");
  std::filesystem::create_symlink("real/a.png", folder / "link.png");
  const Image image = noise_image(3, 3, 3);
  save_png(folder / "link.png", image);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.png"));
  EXPECT_EQ(load_image(folder / "real/a.png"), image);
}

TEST(SavePng, ADeviceStaysADevice) {
  save_png("/dev/null", noise_image(3, 3, 3));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(error_of([] { save_png("/dev/full", noise_image(3, 3, 3)); }),
            "[save_png] /dev/full: cannot be written: No space left on device");
}

TEST(SavePng, SaysWhatIsWrongWithThePath) {
  const TempFolder folder;
  const Image image = noise_image(3, 3, 1);
  const std::string at = folder.path().string();
  EXPECT_EQ(error_of([&] { save_png(folder / "no/such/a.png", image); }),
            "[save_png] " + at + "/no/such/a.png: the folder " + at + "/no/such does not exist");
  EXPECT_EQ(error_of([&] { save_png(folder.path(), image); }),
            "[save_png] " + at + ": expected a file name to write to, got a folder");
  EXPECT_EQ(error_of([&] { save_png("", image); }), "[save_png] expected a file name to write to, got none");
  EXPECT_NE(
      error_of([&] { save_png("/proc/a.png", image); }).find("[save_png] /proc/a.png: cannot be written: "),
      std::string::npos);
  EXPECT_EQ(folder.count(), 0u);
}

TEST(SavePng, UnwritableFolder) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  const TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0500));
  EXPECT_NE(error_of([&] { save_png(folder / "a.png", noise_image(3, 3, 1)); }).find("Permission denied"),
            std::string::npos);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0700));
}

// A limit on file sizes stops a write in its middle, as a full disk does.
TEST(SavePng, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const TempFolder folder;
  const Image old = noise_image(2, 2, 1);
  save_png(folder / "a.png", old);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{2000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string text;
  try {
    save_png(folder / "a.png", noise_image(100, 100, 3));
  } catch (const Error& error) {
    text = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(text, "[save_png] " + (folder / "a.png").string() + ": cannot be written: File too large");
  EXPECT_EQ(load_image(folder / "a.png"), old);
  EXPECT_EQ(folder.count(), 1u);
}

}  // namespace
}  // namespace tandem
