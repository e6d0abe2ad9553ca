// Decoding in confined processes behind the functions of image/decode.h.
#include "tandem/train/decoders/confined_decoder.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "tests/data/photo_cases.h"
#include "tests/image/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

struct Decoded {
  ImageInfo info;
  Image whole, plain_chroma, gray_or_rgb, box, scaled;
  std::string error;

  bool operator==(const Decoded&) const = default;
};

Decoded decode_all(const std::vector<std::uint8_t>& bytes) {
  Decoded decoded;
  try {
    const LoadOptions options{.max_pixels = 1'000'000, .rgb = true};
    decoded.info = read_image_info(bytes, "photo", options);
    decoded.whole = decode_image(bytes, "photo", options);
    decoded.plain_chroma = decode_image(bytes, "photo", {.max_pixels = 1'000'000, .plain_chroma = true});
    decoded.gray_or_rgb = decode_image(bytes, "photo", {.max_pixels = 1'000'000});
    const auto [height, width, channels] = decoded.info;
    decoded.box =
        decode_region(bytes, "photo", {width / 3, height / 2, (width + 1) / 2, (height + 1) / 2}, options);
    decoded.scaled = decode_scaled(bytes, "photo", {0, 0, width, height}, 5, 5, options);
  } catch (const DecodeError& error) {
    decoded.error = error.what();
  }
  return decoded;
}

class ConfinedDecoderTest : public testing::Test {
 protected:
  void confine() {
    set_image_decoder(std::make_shared<ConfinedDecoder>(DecodeProcessOptions{.program = program_file}));
  }
  ~ConfinedDecoderTest() override { set_image_decoder(nullptr); }
};

TEST_F(ConfinedDecoderTest, Images_AreThoseOfThisProcess) {
  std::vector<std::vector<std::uint8_t>> files{{'n', 'o', ' ', 'i', 'm', 'a', 'g', 'e'}};
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder()))
    if (entry.is_regular_file() && entry.path().extension() != ".npy")
      files.push_back(read_bytes(entry.path()));
  std::vector<Decoded> expected;
  for (const auto& bytes : files) expected.push_back(decode_all(bytes));
  EXPECT_GT(files.size(), 10u);
  EXPECT_EQ(expected[0].error.rfind("[decode] photo: not an image", 0), 0u) << expected[0].error;
  confine();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (std::size_t file = 0; file < files.size(); ++file) {
        const Decoded decoded = decode_all(files[file]);
        EXPECT_EQ(decoded, expected[file]) << file << ' ' << decoded.error << ' ' << expected[file].error;
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ConfinedDecoderTest, Limits_HoldThere) {
  confine();
  const std::string image = "P5 20 10 255\n" + std::string(200, '*');
  const std::vector<std::uint8_t> bytes(image.begin(), image.end());
  EXPECT_EQ(decode_image(bytes, "a", {.max_pixels = std::numeric_limits<std::int64_t>::max()}).width, 20);
  EXPECT_NE(error_text([&] { decode_image(bytes, "a", {.max_pixels = 199}); }).find("the limit is 199"),
            std::string::npos);
  EXPECT_NE(error_text([&] { decode_region(bytes, "a", {15, 0, 10, 10}); }), "");
  EXPECT_EQ(error_text([&] { decode_region(bytes, "a", {0, 0, 0, 10}); }), "[decode] a: its decoder crashed");
}

TEST_F(ConfinedDecoderTest, WorkersOfALoader_UseIt) {
  const PhotoFolder folder(12);
  const BatchPlan plan{.samples = 12, .batch_size = 4, .shuffle = false, .replace_unreadable = false};
  const PhotoRecipe recipe = evaluation_photo_recipe(14, PhotoFit::center);
  const std::vector<Loaded> expected = folder.expected_epoch(plan, recipe, 0);
  const auto store = folder.store(false);
  for (const WorkerKind kind : {WorkerKind::thread, WorkerKind::process}) {
    const auto load = [&](std::int64_t max_pixels) {
      set_image_decoder(std::make_shared<ConfinedDecoder>(
          DecodeProcessOptions{.program = program_file, .max_pixels = max_pixels}));
      Loader loader(detail::sample_store(store), plan, recipe,
                    {.workers = 2, .kind = kind, .epochs = 1, .program = program_file});
      std::vector<Loaded> all = load_photo_epoch(loader, plan, recipe, 0);
      return std::pair(std::move(all), loader.statistics().skipped.size());
    };
    const auto [all, skipped] = load(1'000'000);
    EXPECT_TRUE(all == expected);
    EXPECT_EQ(skipped, 0u);
    EXPECT_EQ(load(1).second, 12u) << "refused by the decoder, not by the loader";
  }
}

TEST_F(ConfinedDecoderTest, ProgramThatDoesNotDecode_Throws) {
  EXPECT_EQ(error_text([] { const ConfinedDecoder decoder({.program = "/bin/true"}); }),
            "[decode] the processes that decode images do not work here: its decoder crashed");
}

}  // namespace
}  // namespace tandem
