// The pixels of a JPEG engine are those of libjpeg with plain chroma, for every file that read_common_jpeg()
// accepts.
#include "tandem/device/jpeg_engine.h"

#include <gtest/gtest.h>

#include <string>

#include "tandem/device/buffer.h"
#include "tandem/image/decode.h"
#include "tandem/image/example_photo.h"
#include "tandem/image/jpeg_frame.h"
#include "tests/device/to_host.h"
#include "tests/image/jpeg_writer.h"

namespace tandem {
namespace {

TEST(JpegEngine, Cpu_HasNone) {
  std::string problem;
  EXPECT_EQ(open_jpeg_engine(cpu_device, problem), nullptr);
  EXPECT_EQ(problem, "a CPU has no JPEG engine");
}

class JpegEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << why_no_cuda();
    std::string problem;
    engine_ = open_jpeg_engine(cuda_device(), problem);
    if (!engine_) GTEST_SKIP() << problem;
  }

  // Decodes all files in one call, and compares them with libjpeg's.
  void expect_equal(const std::vector<std::vector<std::uint8_t>>& files,
                    const std::vector<std::string>& names) {
    const Stream stream(cuda_device());
    std::vector<JpegJob> jobs;
    std::vector<Buffer> pixels;
    std::vector<Image> expected;
    for (const std::vector<std::uint8_t>& file : files) {
      expected.push_back(decode_image(file, "photo", {.rgb = true, .plain_chroma = true}));
      pixels.emplace_back(expected.back().pixels.size(), stream);
      jobs.push_back({file, reinterpret_cast<std::uint8_t*>(pixels.back().data()), expected.back().width});
    }
    ASSERT_TRUE(engine_->decode(jobs));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto found = to_host(jobs[i].pixels, std::ssize(expected[i].pixels), cuda_device());
      std::size_t different = 0;
      for (std::size_t k = 0; k < found.size(); ++k) different += found[k] != expected[i].pixels[k];
      EXPECT_EQ(different, 0) << names[i] << ": of " << found.size() << " bytes";
    }
  }

  std::unique_ptr<JpegEngine> engine_;
};

struct Size {
  std::int64_t height, width;
};
constexpr Size sizes[] = {{375, 500}, {500, 375}, {64, 64}, {65, 67}, {33, 129}, {17, 16},  {16, 17},
                          {479, 641}, {100, 31},  {1, 1},   {8, 9},   {3, 200},  {540, 960}};

TEST_F(JpegEngineTest, CommonFiles_EqualLibjpeg) {
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {2, 2}})
    for (const unsigned interval : {0u, 5u})
      for (const int quality : {30, 75, 95}) {
        std::vector<std::vector<std::uint8_t>> files;
        std::vector<std::string> names;
        for (const auto& [height, width] : sizes) {
          std::vector<std::uint8_t> file =
              write_jpeg(example_photo(height, width),
                         {.quality = quality, .h_factor = h, .v_factor = v, .restart_interval = interval});
          ASSERT_TRUE(read_common_jpeg(file));
          const std::string name = std::to_string(h) + "x" + std::to_string(v) + ", interval " +
                                   std::to_string(interval) + ", quality " + std::to_string(quality) + ", " +
                                   std::to_string(width) + "x" + std::to_string(height);
          files.push_back(std::move(file));
          names.push_back(name);
        }
        expect_equal(files, names);
      }
}

TEST_F(JpegEngineTest, GrayFiles_EqualLibjpeg) {
  std::vector<std::vector<std::uint8_t>> files;
  std::vector<std::string> names;
  for (const auto& [height, width] : sizes) {
    std::vector<std::uint8_t> file =
        write_jpeg(to_gray(example_photo(height, width)), {.h_factor = 1, .v_factor = 1});
    ASSERT_TRUE(read_common_jpeg(file));
    files.push_back(std::move(file));
    names.push_back("gray, " + std::to_string(width) + "x" + std::to_string(height));
  }
  expect_equal(files, names);
}

TEST_F(JpegEngineTest, OtherFiles_AreRefusedAndTheNextOnesDecoded) {
  const std::vector<std::uint8_t> good = write_jpeg(example_photo(65, 67), {});
  std::vector<std::uint8_t> other = write_jpeg(example_photo(65, 67), {.progressive = true});
  const Buffer pixels(std::size_t{2} * 3 * 65 * 67, current_stream(cuda_device()));
  auto* const memory = reinterpret_cast<std::uint8_t*>(pixels.data());
  EXPECT_FALSE(engine_->decode(std::vector<JpegJob>{{good, memory, 67}, {other, memory + 3 * 65 * 67, 67}}));
  other = {'h', 'e', 'l', 'l', 'o'};
  EXPECT_FALSE(engine_->decode(std::vector<JpegJob>{{other, memory, 67}}));
  expect_equal({good, good}, {"first", "second"});
}

}  // namespace
}  // namespace tandem
