#include "tandem/data/photo_store.h"

#include <cstring>

#include "tests/core/error_text.h"
#include "tests/data/photo_cases.h"

namespace tandem {
namespace {

TEST(PhotoStore, Decoded_HoldsThePixelsOfTheFiles) {
  const PhotoFolder folder(20);
  const auto store = folder.store(true);
  const PhotoTable table = PhotoTable::attach(store->memory().bytes());
  ASSERT_TRUE(table.decoded());
  ASSERT_EQ(table.count(), 20);
  EXPECT_TRUE(store->bad().empty());
  for (std::int64_t i = 0; i < 20; ++i) {
    const Image expected = load_image(folder.files[static_cast<std::size_t>(i)]);
    EXPECT_TRUE(copy(table.photo(i)) == expected) << i;
    EXPECT_EQ(table.label(i), i % 3);
    EXPECT_EQ(table.path(i), folder.files[static_cast<std::size_t>(i)].string());
  }
}

TEST(PhotoStore, PixelsDoNotFit_KeepsPaths) {
  const PhotoFolder folder(5);
  std::int64_t bytes = 0;
  for (const auto& file : folder.files) {
    const Image photo = load_image(file);
    bytes += (3 * photo.height * photo.width + 15) / 16 * 16;
  }
  EXPECT_TRUE(PhotoStore(folder.files, folder.labels, {.max_decoded_bytes = bytes}).table().decoded());
  const PhotoStore store(folder.files, folder.labels, {.max_decoded_bytes = bytes - 1});
  EXPECT_FALSE(store.table().decoded());
  EXPECT_LT(store.memory().size(), 8192U + static_cast<std::size_t>(bytes));
  EXPECT_EQ(store.table().path(4), folder.files[4].string());
  EXPECT_EQ(store.table().label(4), 1);
}

TEST(PhotoStore, EveryFormat_BecomesUprightRgb) {
  std::vector<std::filesystem::path> files;
  for (const char* name : {"exif_6.jpg", "bmp_gray.bmp", "bmp_palette.bmp", "exif_3.png"})
    files.push_back(golden_folder() / name);
  const PhotoStore store(files, std::vector<std::int32_t>(files.size()), {.max_decoded_bytes = 1 << 24});
  ASSERT_TRUE(store.bad().empty());
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_TRUE(copy(store.table().photo(static_cast<std::int64_t>(i))) == to_rgb(load_image(files[i])))
        << files[i];
}

TEST(PhotoStore, PathsWithSpecialCharacters_AreKept) {
  const TempFolder folder;
  std::vector<std::filesystem::path> files;
  for (const char* name : {"two words.png", "it's \"quoted\".png", "line\nbreak.png", "Größe 猫.png"}) {
    files.push_back(folder / name);
    save_png(files.back(), noise_photo(4, 5, 1));
  }
  const PhotoStore store(files, {0, 1, 2, 3}, {.max_decoded_bytes = 1 << 20});
  EXPECT_TRUE(store.bad().empty());
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(store.table().path(i), files[static_cast<std::size_t>(i)].string());
}

TEST(PhotoStore, BadFiles_AreListedOrThrow) {
  const PhotoFolder folder(12, {4, 7});
  const auto store = folder.store(true);
  ASSERT_EQ(store->bad().size(), 2U);
  EXPECT_EQ(store->bad()[0].sample, 4);
  EXPECT_EQ(store->bad()[1].sample, 7);
  for (const BadSample& bad : store->bad()) {
    EXPECT_EQ(store->table().location(bad.sample).height, 0);
    EXPECT_FALSE(bad.reason.empty());
    EXPECT_EQ(bad.reason.find(".png"), std::string::npos) << bad.reason;
  }
  const std::string text = error_text([&] { folder.store(true, OnBadImage::fail); });
  EXPECT_EQ(text, "[photos] " + folder.files[4].string() + ": " + store->bad()[0].reason);
}

TEST(PhotoStore, NoReadableFile_Throws) {
  EXPECT_EQ(error_text([] { PhotoStore({}, {}); }), "[photos] expected 1 to 2147483647 photographs, got 0");
  const PhotoFolder folder(2, {0, 1});
  const std::string text = error_text([&] { folder.store(true); });
  EXPECT_EQ(text.rfind("[photos] expected photographs that can be read, got none in 2 files, the first ", 0),
            0U)
      << text;
  const TempFolder empty;
  const PhotoStore missing({empty / "gone.png", folder.files[0]}, {0, 1}, {.max_decoded_bytes = 0});
  EXPECT_FALSE(missing.table().decoded());
}

TEST(PhotoStore, Attach_ToOtherMemory_Throws) {
  std::vector<std::byte> memory(4096);
  EXPECT_EQ(error_text([&] { PhotoTable::attach(memory); }),
            "[worker] expected photographs of this version of tandem, got 4096 bytes of something else");
  EXPECT_EQ(error_text([&] { PhotoTable::attach(std::span(memory).first(3)); }),
            "[worker] expected photographs of this version of tandem, got 3 bytes of something else");
  const PhotoFolder folder(3);
  const auto store = folder.store(true);
  std::vector<std::byte> cut(store->memory().bytes().begin(), store->memory().bytes().end() - 1);
  EXPECT_NE(error_text([&] { PhotoTable::attach(cut); }), "");
}

TEST(PhotoFile, Decode_OfABox_ExactOrScaled) {
  const std::string path = (golden_folder() / "exif_6.jpg").string();
  const PhotoFile file(path, {});
  const Image whole = file.decode();
  EXPECT_EQ(whole.height, file.height());
  EXPECT_EQ(whole.width, file.width());
  const PixelBox box{.x = 1, .y = 2, .width = file.width() - 3, .height = file.height() - 4};
  EXPECT_TRUE(file.decode(box, 1, 1) == copy(crop(whole, box)));
  const Image scaled = PhotoFile(path, {.scaled = true}).decode(box, 3, 3);
  EXPECT_GE(scaled.height, 3);
  EXPECT_GE(scaled.width, 3);
  EXPECT_LE(scaled.height, box.height);
  EXPECT_EQ(error_text([&] { PhotoFile(path, {.max_pixels = 1}); }).rfind("[decode] " + path + ": ", 0), 0U);
}

}  // namespace
}  // namespace tandem
