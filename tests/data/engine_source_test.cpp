// Photographs through a JPEG engine are the same bytes, in the same order, as through workers on the CPU:
// with an engine that is libjpeg, and with that of a GPU where there is one.
#include "tandem/data/loader/engine_source.h"

#include <atomic>

#include "tandem/augment/transform.h"
#include "tandem/core/check.h"
#include "tandem/data/loader/augmented_source.h"
#include "tandem/data/loader/make_source.h"
#include "tests/data/photo_cases.h"
#include "tests/device/to_host.h"
#include "tests/image/jpeg_writer.h"

namespace tandem {
namespace {

const PhotoRecipe recipe = Transform::parse("crop, flip, jitter 0.4 0.4 0.4 0.1, erase 0.3", 16).photo();

// Decodes with libjpeg into the memory of the CPU.
class LibjpegEngine : public JpegEngine {
 public:
  bool decode(std::span<const JpegJob> jobs) override {
    ++calls;
    max_files = std::max(max_files.load(), std::ssize(jobs));
    if (calls % fail_every == 0) return false;
    for (const JpegJob& job : jobs) {
      const Image image = decode_image(job.bytes, "photo", {.rgb = true, .plain_chroma = true});
      std::copy(image.pixels.begin(), image.pixels.end(), job.pixels);
    }
    files += std::ssize(jobs);
    return true;
  }

  static inline std::atomic<std::int64_t> files = 0, calls = 0, max_files = 0, fail_every = 1 << 30;
};

// JPEGs of several kinds and sizes, PNGs, and files that cannot be read.
class MixedFolder {
 public:
  explicit MixedFolder(std::size_t count, bool some_bad) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const Image photo = noise_photo(20 + at % 7, 20 + at % 11, static_cast<unsigned>(i));
      std::vector<std::uint8_t> bytes =
          i % 9 == 4 ? encode_png(photo)
                     : write_jpeg(i % 9 == 5 ? to_gray(photo) : photo,
                                  {.h_factor = i % 9 == 5 ? 1 : static_cast<int>(1 + i % 2),
                                   .v_factor = i % 9 == 5 ? 1 : static_cast<int>(1 + i % 4 / 3),
                                   .progressive = i % 9 == 6,
                                   .orientation = i % 9 == 7 ? 6 : 1});
      if (some_bad && i % 10 == 3) bytes.resize(i % 20 == 3 ? 3 : bytes.size() - 40);
      files.push_back(folder_ / (std::to_string(i) + ".jpg"));
      put_bytes(files.back(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      labels.push_back(static_cast<std::int32_t>(i % 3));
    }
  }

  std::shared_ptr<const PhotoStore> store(OnBadImage on_bad = OnBadImage::skip) const {
    return std::make_shared<const PhotoStore>(
        files, labels,
        PhotoStoreOptions{.max_decoded_bytes = 0, .on_bad_image = on_bad, .decode = {.hardware = true}});
  }

  std::vector<std::filesystem::path> files;
  std::vector<std::int32_t> labels;

 private:
  TempFolder folder_;
};

struct Row {
  std::int32_t label = 0;
  std::vector<std::uint8_t> pixels;
  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> rows_of(BatchSource& source, std::int64_t epoch, std::int64_t first = 0,
                         std::int64_t max_count = 1 << 20) {
  std::vector<Row> rows;
  const std::int64_t size = source.image_size();
  while (first < source.plan().local_positions()) {
    const SourceBlock block = source.next_block(epoch, first, max_count);
    const auto samples = to_host(block.samples, block.count, source.device());
    const auto labels = to_host(block.labels, block.count, source.device());
    for (std::size_t i = 0; i < labels.size(); ++i)  // other rows may be written at the same time
      rows.push_back({labels[i], to_host(block.images + samples[i] * size, size, source.device())});
    first += block.count;
  }
  return rows;
}

class EngineSource : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    LibjpegEngine::files = LibjpegEngine::calls = LibjpegEngine::max_files = 0;
    LibjpegEngine::fail_every = 1 << 30;
  }

  std::unique_ptr<EngineDecodedPhotos> engine_source(const BatchPlan& batches,
                                                     const LoaderOptions& options = {.workers = 3},
                                                     const EngineLimits& limits = {}) const {
    return std::make_unique<EngineDecodedPhotos>(folder.store(), batches, recipe, options, cpu_device,
                                                 std::make_unique<LibjpegEngine>(), limits);
  }

  std::vector<Row> expected(const BatchPlan& batches, std::int64_t epoch, std::int64_t first = 0) const {
    HostPrefetcher source(detail::sample_store(folder.store()), batches, recipe, {.workers = 2});
    return rows_of(source, epoch, first);
  }

  const MixedFolder folder{90, GetParam()};
  const BatchPlan plan{.samples = 90, .batch_size = 6, .batches_per_epoch = 150, .seed = 3};
  const BatchPlan in_order{.samples = 90, .batch_size = 7, .shuffle = false, .replace_unreadable = false};
};

TEST_P(EngineSource, Epochs_EqualThoseOfWorkers) {
  for (const BatchPlan& batches : {plan, in_order}) {
    const auto source = engine_source(batches);
    for (const std::int64_t epoch : {0, 1}) EXPECT_EQ(rows_of(*source, epoch), expected(batches, epoch));
    EXPECT_EQ(source->skipped().size(), GetParam() ? 9U : 0U);
  }
  EXPECT_GT(LibjpegEngine::files, 0);
}

TEST_P(EngineSource, SmallBlocksAndJumps_EqualThoseOfWorkers) {
  const auto source = engine_source(plan, {.workers = 2, .prefetch = 3, .epochs = 3});
  EXPECT_EQ(rows_of(*source, 0, 600, 6), expected(plan, 0, 600));
  EXPECT_EQ(rows_of(*source, 2, 0, 12), expected(plan, 2));
  EXPECT_EQ(rows_of(*source, 0, 102, 6), expected(plan, 0, 102));
  source->next_block(1, 0, 6);  // what was prefetched is abandoned
  source->next_block(0, 30, 6);
  EXPECT_EQ(rows_of(*source, 1, 300), expected(plan, 1, 300));
}

TEST_P(EngineSource, Limits_SplitTheCallsAndChangeNothing) {
  const std::vector<Row> wanted = expected(in_order, 0);
  const LoaderOptions options{.workers = 2, .epochs = 1};
  EXPECT_EQ(rows_of(*engine_source(in_order, options, {.files = 5}), 0), wanted);
  EXPECT_EQ(LibjpegEngine::max_files, 5);
  // Room for two photographs, the larger ones of which are left to the CPU.
  const std::int64_t before = LibjpegEngine::files.exchange(0);
  EXPECT_EQ(rows_of(*engine_source(in_order, options, {.pixel_bytes = 2 * 3 * 24 * 25}), 0), wanted);
  EXPECT_GT(LibjpegEngine::files, 0);
  EXPECT_LT(LibjpegEngine::files, before);
  // Nothing is read ahead of what is being decoded.
  EXPECT_EQ(rows_of(*engine_source(in_order, {.workers = 2}, {.read_bytes = 0}), 0), wanted);
}

TEST_P(EngineSource, FailedCalls_AreDecodedOnTheCpu) {
  LibjpegEngine::fail_every = 3;
  EXPECT_EQ(rows_of(*engine_source(plan, {.workers = 2}, {.files = 8}), 1), expected(plan, 1));
  LibjpegEngine::fail_every = 1;
  EXPECT_EQ(rows_of(*engine_source(in_order), 0), expected(in_order, 0));
}

TEST_P(EngineSource, Balanced_EqualsThatOfWorkers) {
  const ClassLists classes(90,
                           [&](std::int64_t i) { return folder.labels[static_cast<std::size_t>(i)] / 2; });
  BatchPlan balanced = plan;
  balanced.balanced = classes.table();
  EXPECT_EQ(rows_of(*engine_source(balanced), 1), expected(balanced, 1));
}

TEST_P(EngineSource, PartOfBatches_EqualsThatOfWorkers) {
  BatchPlan part = plan;
  part.part = {.shards = 3, .own = {1, 3}};
  EXPECT_EQ(rows_of(*engine_source(part), 1), expected(part, 1));
}

TEST_P(EngineSource, Destructor_StopsInTheMiddle) {
  const auto source = engine_source(plan);
  source->next_block(0, 0, 6);
}

INSTANTIATE_TEST_SUITE_P(Folders, EngineSource, testing::Bool(), [](const testing::TestParamInfo<bool>& bad) {
  return bad.param ? "SomeBad" : "AllGood";
});

std::unique_ptr<EngineDecodedPhotos> source_of(const std::shared_ptr<const PhotoStore>& store,
                                               const LoaderOptions& options) {
  return std::make_unique<EngineDecodedPhotos>(
      store, BatchPlan{.samples = store->table().count(), .batch_size = 5, .shuffle = false}, recipe, options,
      cpu_device, std::make_unique<LibjpegEngine>());
}

TEST(EngineSourceErrors, BadFile_EndsTheRunIfAsked) {
  const MixedFolder folder(20, true);
  const auto source = source_of(folder.store(OnBadImage::fail), {.workers = 1});
  const std::string text = error_text([&] { source->next_block(0, 0, 5); });
  EXPECT_EQ(text.find("[loader] " + folder.files[3].string() + ": "), 0U) << text;
  EXPECT_EQ(error_text([&] { source->next_block(0, 0, 5); }), text);
}

TEST(EngineSourceErrors, Exception_ReachesTheTrainerWithThePath) {
  const MixedFolder folder(20, false);
  LoaderOptions options{.workers = 2};
  options.before_sample = [](std::int32_t sample) { check(sample != 7, "no seven"); };
  const auto source = source_of(folder.store(), options);
  EXPECT_EQ(error_text([&] { rows_of(*source, 0); }), "[loader] " + folder.files[7].string() + ": no seven");
}

TEST(EngineSourceErrors, OnlyBadFiles_EndTheRun) {
  const MixedFolder folder(20, true);
  const auto store = std::make_shared<const PhotoStore>(
      std::vector{folder.files[3], folder.files[13]}, std::vector<std::int32_t>{0, 1},
      PhotoStoreOptions{.max_decoded_bytes = 0, .decode = {.hardware = true}});
  const auto source = source_of(store, {.workers = 1});
  const std::string text = error_text([&] { source->next_block(0, 0, 5); });
  EXPECT_NE(text.find("expected photographs that can be read, got none in 2 files"), text.npos) << text;
}

TEST(EngineSourceChoice, WithoutEngine_WorkersDecode) {
  const MixedFolder folder(20, false);
  const auto source =
      make_source(detail::sample_store(folder.store()), {.samples = 20}, recipe, cpu_device, {.workers = 2});
  EXPECT_EQ(source->description(), "by 2 threads on the CPU");
}

TEST(EngineSourceCuda, Gpu_EqualsCpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << why_no_cuda();
  std::string problem;
  if (!open_jpeg_engine(cuda_device(), problem)) GTEST_SKIP() << problem;
  const MixedFolder folder(600, true);
  const PhotoRecipe photo = Transform::parse("crop, flip 0.5, jitter 0.4 0.4 0.4 0.1", 32).photo();
  const BatchPlan plan{.samples = 600, .batch_size = 64, .seed = 3};
  const auto source =
      make_source(detail::sample_store(folder.store()), plan, photo, cuda_device(), {.workers = 4});
  EXPECT_EQ(source->description(), "decoded by the JPEG engine of cuda:0, augmented there");
  HostPrefetcher host(detail::sample_store(folder.store()), plan, photo, {.workers = 4});
  for (const std::int64_t epoch : {0, 1}) EXPECT_EQ(rows_of(*source, epoch), rows_of(host, epoch));
  EXPECT_EQ(source->skipped().size(), 60U);
  for (const bool on_gpu : {false, true}) {
    LoaderOptions options{.workers = 2};
    if (on_gpu) options.kind = WorkerKind::process;
    const auto other =
        make_source(detail::sample_store(folder.store()), plan, photo, cuda_device(), options, on_gpu);
    EXPECT_NE(other->description().find("on the CPU"), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem
