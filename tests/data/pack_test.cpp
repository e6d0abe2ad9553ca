#include "tandem/data/pack.h"

#include <gtest/gtest.h>

#include "tandem/data/image_folder.h"
#include "tandem/data/loader/loader.h"
#include "tandem/files/packed_path.h"
#include "tandem/files/read_file.h"
#include "tandem/image/resize.h"
#include "tandem/image/save_image.h"
#include "tests/data/photo_cases.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Twelve photographs in two classes, one of them damaged, and a file that is none.
class PackCase : public testing::Test {
 protected:
  PackCase() {
    for (const char* const name : {"a-b", "a"}) fs::create_directories(photos_ / name / "deep");
    for (unsigned i = 0; i < 12; ++i)
      save_png(
          photos_ / (i % 2 == 0 ? "a-b" : "a") / (i % 3 == 0 ? "deep" : "") / (std::to_string(i) + ".png"),
          noise_photo(20 + i, 40 - 2 * i, i));
    std::string bytes = get_bytes(damaged_);
    put_bytes(damaged_, bytes.substr(0, bytes.size() / 2));
    put_bytes(photos_ / "a/notes.txt", "text");
  }

  PackCounts pack(PackStore store, std::int64_t side = 16) {
    return pack_images(photos_, set_, {.store = store, .side = side, .overwrite = true});
  }
  std::vector<fs::path> files_of(const fs::path& root) { return scan_image_folder(root).files; }
  Image packed_image(const fs::path& file) {
    return load_image_file(set_ / file.lexically_relative(photos_), {.rgb = true});
  }

  TempFolder folder_;
  const fs::path photos_ = folder_ / "photos", set_ = folder_ / "set.tandem";
  const fs::path damaged_ = photos_ / "a/7.png";
};

TEST_F(PackCase, Original_HasTheFilesInTheOrderOfTheFolder) {
  const PackCounts counts = pack(PackStore::original);
  EXPECT_EQ(counts.images, 12);
  EXPECT_TRUE(counts.unreadable.empty());  // nothing is decoded
  ASSERT_EQ(counts.skipped.size(), 1u);
  EXPECT_EQ(counts.bytes, fs::file_size(set_));
  const ImageFolder before = scan_image_folder(photos_), after = scan_image_folder(set_);
  EXPECT_EQ(after.classes, before.classes);
  EXPECT_EQ(after.labels, before.labels);
  ASSERT_EQ(after.files.size(), before.files.size());
  for (std::size_t i = 0; i < before.files.size(); ++i) {
    EXPECT_EQ(after.files[i], set_ / before.files[i].lexically_relative(photos_));
    EXPECT_EQ(read_file("test", after.files[i], 1 << 20), get_bytes(before.files[i]));
  }
  EXPECT_EQ(list_images(set_).files.size(), 12u);
  EXPECT_EQ(list_images(set_ / "a/1.png").files, std::vector{set_ / "a/1.png"});
}

TEST_F(PackCase, Pixels_AreReducedAsPillowDoes) {
  const PackCounts counts = pack(PackStore::pixels, 24);
  ASSERT_EQ(counts.unreadable.size(), 1u);
  EXPECT_EQ(counts.unreadable[0].name, damaged_.string());
  for (const fs::path& file : files_of(photos_)) {
    if (file == damaged_) {  // its bytes are kept
      EXPECT_EQ(read_file("test", set_ / "a/7.png", 1 << 20), get_bytes(damaged_));
      continue;
    }
    const Image image = load_image(file, {.rgb = true});
    const std::int64_t h = image.height, w = image.width;
    const Image expected =
        std::min(h, w) <= 24 ? image : resize(image, h <= w ? 24 : 24 * h / w, w <= h ? 24 : 24 * w / h);
    EXPECT_EQ(packed_image(file), expected) << file;
  }
}

TEST_F(PackCase, Jpeg_EncodesLargerImagesAgain) {
  pack(PackStore::jpeg, 24);
  for (const fs::path& file : files_of(photos_)) {
    const std::string bytes = read_file("test", set_ / file.lexically_relative(photos_), 1 << 20);
    const bool is_large = file != damaged_ && [&] {
      const Image image = load_image(file);
      return std::min(image.height, image.width) > 24;
    }();
    if (!is_large) {
      EXPECT_EQ(bytes, get_bytes(file));
      continue;
    }
    EXPECT_TRUE(bytes.starts_with("\xFF\xD8")) << file;
    const Image image = packed_image(file);
    EXPECT_EQ(std::min(image.height, image.width), 24);
  }
}

TEST_F(PackCase, PackedSet_CanBePackedAgain) {
  pack(PackStore::pixels);
  const std::string expected = get_bytes(set_);
  pack(PackStore::original);
  const fs::path second = folder_ / "second.tandem";
  pack_images(set_, second, {.side = 16});
  EXPECT_EQ(get_bytes(second), expected);
}

// The loaders, with workers of both kinds, decoded up front or not.
TEST_F(PackCase, Batches_AreThoseOfTheStoredImages) {
  const fs::path stored = folder_ / "stored";  // the reduced images as files
  pack(PackStore::pixels);
  ImageFolder folder = scan_image_folder(set_);
  std::vector<fs::path> files;
  for (const fs::path& file : folder.files) {
    files.push_back(stored / fs::path(file.lexically_relative(set_)));
    fs::create_directories(files.back().parent_path());
    put_bytes(files.back(), read_file("test", file, 1 << 20));
  }
  const PhotoRecipe recipe = training_photo_recipe(12);
  const BatchPlan plan{.samples = 12, .batch_size = 4, .seed = 5};
  const auto epoch_of = [&](const std::vector<fs::path>& from, std::int64_t max_bytes, int workers,
                            WorkerKind kind) {
    const auto store = std::make_shared<const PhotoStore>(from, folder.labels,
                                                          PhotoStoreOptions{.max_decoded_bytes = max_bytes});
    EXPECT_EQ(store->table().decoded(), max_bytes > 0);
    Loader loader(detail::sample_store(store), plan, recipe, {.workers = workers, .kind = kind});
    return load_photo_epoch(loader, plan, recipe, 1);
  };
  const std::vector<Loaded> expected = epoch_of(files, 0, 0, WorkerKind::thread);
  EXPECT_EQ(epoch_of(folder.files, 0, 0, WorkerKind::thread), expected);
  EXPECT_EQ(epoch_of(folder.files, 0, 2, WorkerKind::thread), expected);
  EXPECT_EQ(epoch_of(folder.files, 0, 2, WorkerKind::process), expected);
  EXPECT_EQ(epoch_of(folder.files, 1 << 20, 0, WorkerKind::thread), expected);
}

TEST_F(PackCase, DamagedImageOfASet_IsSkippedWithTheReason) {
  pack(PackStore::pixels);
  std::string bytes = get_bytes(set_);
  bytes[64 + 200] = static_cast<char>(bytes[64 + 200] + 1);
  put_bytes(folder_ / "bad.tandem", bytes);
  const ImageFolder folder = scan_image_folder(folder_ / "bad.tandem");
  const PhotoStore store(folder.files, folder.labels, {});
  ASSERT_EQ(store.bad().size(), 2u);
  std::vector<std::string> reasons{store.bad()[0].reason, store.bad()[1].reason};
  EXPECT_NE(std::ranges::find(reasons, "the bytes do not have their checksum"), reasons.end());
}

TEST_F(PackCase, BadInput_IsAnErrorThatLeavesNothing) {
  const auto error_of = [&](const fs::path& from, const fs::path& to, const PackOptions& options = {}) {
    const std::size_t before = folder_.count();
    const std::string text = error_text([&] { pack_images(from, to, options); });
    EXPECT_EQ(folder_.count(), before);
    return text;
  };
  const std::string photos = photos_.string();
  EXPECT_EQ(error_of(photos_, folder_ / "set.zip"),
            "[pack] " + (folder_ / "set.zip").string() + ": expected a name that ends in .tandem");
  EXPECT_EQ(error_of(folder_ / "none", set_),
            "[pack] " + (folder_ / "none").string() + ": expected a folder of images");
  EXPECT_EQ(error_of(photos_, set_, {.side = 0}),
            "[pack] expected a side of at least 1 and a quality from 1 to 100, got 0 and 90");
  fs::create_directories(folder_ / "empty");
  EXPECT_NE(error_of(folder_ / "empty", set_).find("has no images"), std::string::npos);
  fs::create_directories(folder_ / "bad");
  put_bytes(folder_ / "bad/1.jpg", "text");
  EXPECT_EQ(error_of(folder_ / "bad", set_)
                .find("[pack] " + (folder_ / "bad").string() +
                      ": expected images that can be read, got none in 1 files"),
            0u);
  put_bytes(set_, "old");
  EXPECT_EQ(error_of(photos_, set_), "[pack] " + set_.string() + ": the file exists");
  with_full_disk(300, [&] {
    EXPECT_EQ(error_of(photos_, set_, {.overwrite = true}),
              "[pack] cannot write " + set_.string() + ": File too large");
  });
  EXPECT_EQ(get_bytes(set_), "old");
}

}  // namespace
}  // namespace tandem
