// Data sets: those of the library, and a user's own with thread and process workers.
#include "tandem/data/dataset.h"

#include <gtest/gtest.h>

#include "tandem/data/datasets.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/loader/loader.h"
#include "tandem/data/loader/make_source.h"
#include "tandem/data/loader/materialize.h"
#include "tandem/data/loader/run_worker.h"
#include "tandem/data/synthetic/digits.h"
#include "tests/core/error_text.h"
#include "tests/data/dataset_cases.h"
#include "tests/data/loader_cases.h"
#include "tests/data/photo_cases.h"
#include "tests/data/test_program.h"

namespace tandem {
namespace {

struct Workers {
  int count;
  WorkerKind kind;
};
constexpr Workers all_workers[] = {
    {0, WorkerKind::thread}, {1, WorkerKind::thread}, {3, WorkerKind::thread}, {2, WorkerKind::process}};

TEST(ImageDataset, Samples_AreThoseOfTheSet) {
  const ImageSet set = small_set(12, 5, 4, 3);
  const ImageDataset dataset(set);
  ASSERT_EQ(dataset.size(), 12);
  EXPECT_EQ(dataset.label(11), 1);
  EXPECT_EQ(dataset.classes().size(), 10U);
  EXPECT_EQ(dataset.describe(7), "sample 7");
  const Image image = dataset.image(7);
  EXPECT_EQ(image.height, 5);
  EXPECT_EQ(image.width, 4);
  const std::uint8_t* const from = set.images.data<std::uint8_t>() + 7 * 60;
  EXPECT_EQ(image.pixels, std::vector<std::uint8_t>(from, from + 60));
  const ImageDataset part = dataset.slice(3, 9);
  EXPECT_EQ(part.size(), 6);
  EXPECT_EQ(part.image(4), image);
}

TEST(ImageDataset, InvalidArguments_Throw) {
  const ImageDataset dataset(small_set(3));
  EXPECT_EQ(error_text([&] { dataset.image(3); }), "[data] expected a sample from 0 to below 3, got 3");
  EXPECT_EQ(error_text([&] { dataset.label(-1); }), "[data] expected a sample from 0 to below 3, got -1");
  EXPECT_EQ(error_text([] { ImageDataset(ImageSet{}); }), "[data] expected images and labels, got none");
  ImageSet stray = small_set(12);
  stray.classes.resize(4);
  EXPECT_EQ(error_text([&] { ImageDataset{stray}; }),
            "[data] expected labels from 0 to 3, got 4 for image 4");
  EXPECT_NE(error_text([&] { ImageDataset(small_set(3, 4, 4, 2)).image(0); }), "");
  EXPECT_NE(error_text([&] { dataset.slice(2, 4); }), "");
}

TEST(Datasets, Digits_AreThoseOfDigitsSplit) {
  const DatasetSplit split = digits({.train = 30, .test = 20, .seed = 4});
  const DataSplit expected = digits_split(30, 20, 4);
  EXPECT_EQ(split.name, "digits");
  EXPECT_EQ(split.train.size(), 30);
  EXPECT_EQ(split.test.images().images.to_vector<std::uint8_t>(),
            expected.test.images.to_vector<std::uint8_t>());
}

TEST(PhotoDataset, Samples_AreThoseOfTheFiles) {
  const PhotoFolder folder(9, {2});
  for (const bool decoded : {true, false}) {
    const PhotoDataset dataset(folder.store(decoded), {"x", "y", "z"});
    ASSERT_EQ(dataset.size(), 9);
    EXPECT_EQ(dataset.label(4), 1);
    EXPECT_EQ(dataset.describe(4), folder.files[4].string());
    EXPECT_EQ(dataset.image(4), to_rgb(load_image(folder.files[4])));
    EXPECT_EQ(error_text([&] { dataset.image(2); }).rfind("[decode] " + folder.files[2].string(), 0), 0U);
    EXPECT_NE(error_text([&] { dataset.image(9); }), "");
  }
  EXPECT_EQ(error_text([&] {
              PhotoDataset(folder.store(true), {"x", "y"});
            }),
            "[data] " + folder.files[2].string() + ": expected a label from 0 to 1, got 2");
}

TEST(PhotoDataset, ImageFolder_UsesTheGivenClasses) {
  const TempFolder folder;
  for (const char* name : {"all/b/1.png", "all/c/2.png", "all/a/3.png", "some/c/4.png", "other/d/5.png"}) {
    std::filesystem::create_directories((folder / name).parent_path());
    save_png(folder / name, noise_photo(6, 7, 1));
  }
  const PhotoDataset train = image_folder(folder / "all");
  EXPECT_EQ(train.classes(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(train.size(), 3);
  EXPECT_EQ(train.describe(2), (folder / "all/c/2.png").string());
  EXPECT_EQ(image_folder(folder / "some").label(0), 0);
  const PhotoDataset validation = image_folder(folder / "some", {.classes = train.classes()});
  EXPECT_EQ(validation.label(0), 2);
  EXPECT_EQ(validation.classes(), train.classes());
  EXPECT_EQ(
      error_text([&] { image_folder(folder / "other", {.classes = train.classes()}); }),
      "[photos] " + (folder / "other").string() + ": class 'd' is not one of the 3 known classes: a, b, c");
}

TEST(OwnDataset, AnyWorkers_GiveTheBytesOfTheSameImagesInMemory) {
  const NoiseDataset dataset(100);
  const BatchPlan plan{.samples = 100, .batch_size = 8, .seed = 5};
  const ImageSet set = dataset.in_memory();
  for (const Transform& transform : {Transform(), Transform(test_recipe())})
    for (const Workers& workers : all_workers) {
      Loader loader(dataset.sample_store(), plan, transform,
                    {.workers = workers.count, .kind = workers.kind});
      for (const std::int64_t epoch : {0, 1})
        EXPECT_TRUE(load_epoch(loader, set, plan, epoch) ==
                    expected_epoch(set, plan, transform.pixels(), epoch))
            << workers.count;
    }
}

// Gray images become RGB; also for images of an array, in every kind of worker.
TEST(OwnDataset, TransformThatResizes_GivesRgbOfItsSize) {
  const NoiseDataset dataset(30);
  const BatchPlan plan{.samples = 30, .batch_size = 30, .seed = 2};
  const Transform transform = training_transform(6);
  const ImageSet set = dataset.in_memory();
  for (const auto& store : {dataset.sample_store(), ImageDataset(set).sample_store()})
    for (const Workers& workers : all_workers) {
      Loader loader(store, plan, transform, {.workers = workers.count, .kind = workers.kind});
      const LoadedBlock block = loader.acquire(1, 0);
      ASSERT_EQ(block.count, 30);
      PhotoScratch scratch;
      std::vector<std::uint8_t> expected(6 * 6 * 3);
      for (std::int64_t i = 0; i < 30; ++i) {
        const RandomKey key{.seed = 2, .epoch = 1, .sample = static_cast<std::uint32_t>(block.samples[i])};
        transform_photo(transform.photo(), key, to_rgb(dataset.image(block.samples[i])), expected.data(),
                        scratch);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), block.images + i * 108)) << i;
      }
      loader.release(block);
    }
}

TEST(OwnDataset, WhatIsWrongWithASample_IsOneErrorThatNamesIt) {
  const auto load = [](const char* fault, const Workers& workers, const Transform& transform) {
    const FaultyDataset dataset(fault);
    Loader loader(dataset.sample_store(), {.samples = 20, .batch_size = 4}, transform,
                  {.workers = workers.count, .kind = workers.kind});
    for (std::int64_t first = 0; first < 20;) {
      const LoadedBlock block = loader.acquire(0, first);
      first += block.count;
      loader.release(block);
    }
  };
  const auto text = [&](const char* fault, const Workers& workers, const Transform& transform) {
    return error_text([&] { load(fault, workers, transform); });
  };
  for (const Workers& workers : all_workers) {
    EXPECT_EQ(text("throws", workers, {}), "[loader] shot 5: the camera is off");
    EXPECT_EQ(text("throws an int", workers, {}),
              "[loader] shot 5: an exception that is not a std::exception");
    EXPECT_EQ(text("label", workers, {}), "[loader] shot 5: expected a label from 0 to 2, got 3");
    EXPECT_EQ(text("size", workers, {}),
              "[loader] shot 5: expected images of one size, 10x8 with 1 channel like the first, or a "
              "transform that resizes; got 10x9 with 1 channel");
    EXPECT_EQ(text("channels", workers, test_recipe()),
              "[loader] shot 5: expected images of one size, 10x8 with 1 channel like the first, or a "
              "transform that resizes; got 10x8 with 3 channels");
    EXPECT_EQ(text("pixels", workers, {}),
              "[loader] shot 5: expected 80 bytes of pixels for an image of 10x8 with 1 channel, got 79");
    EXPECT_EQ(text("empty", workers, training_transform(4)),
              "[loader] shot 5: expected a gray or RGB image, got 0x0 with 0 channels");
    EXPECT_NO_THROW(load("size", workers, training_transform(4)));
  }
}

TEST(OwnDataset, PhotographsOfDifferentSizes_WithoutResizing_NameBothSizes) {
  const PhotoFolder folder(3);
  for (const bool decoded : {true, false}) {
    const PhotoDataset dataset(folder.store(decoded), {"x", "y", "z"});
    for (const int workers : {0, 2})
      EXPECT_EQ(error_text([&] {
                  Loader(dataset.sample_store(), {.samples = 3, .batch_size = 3, .shuffle = false}, {},
                         {.workers = workers})
                      .acquire(0, 0);
                }),
                "[loader] " + folder.files[1].string() +
                    ": expected images of one size, 9x9 with 3 channels like the first, or a transform that "
                    "resizes; got 10x10 with 3 channels");
  }
}

TEST(OwnDataset, PhotographsOfOneSize_WithoutResizing_KeepTheirPixels) {
  const std::vector<Image> photos{noise_photo(4, 5, 1), noise_photo(4, 5, 2)};
  const std::vector<std::string> names{"a", "b"};
  const PhotoDataset dataset(
      std::make_shared<const PhotoStore>(photos, names, std::vector<std::int32_t>{0, 1}), {"x", "y"});
  const ImageSet set = materialize(dataset);
  EXPECT_EQ(set.images.shape(), (Shape{2, 4, 5, 3}));
  EXPECT_EQ(set.images.slice(0, 1, 2).to_vector<std::uint8_t>(), photos[1].pixels);
}

TEST(OwnDataset, ProcessWorkersWithoutFactory_Throw) {
  const auto text = [](const Dataset& dataset) {
    return error_text([&] {
      Loader(dataset.sample_store(), {.samples = 10}, {}, {.workers = 2, .kind = WorkerKind::process})
          .acquire(0, 0);
    });
  };
  EXPECT_EQ(
      text(NoiseDataset(10, false)),
      "[loader] expected a data set with a factory_call() for process workers, got one without: override "
      "it and register its factory, or use thread workers");
  struct Unregistered : NoiseDataset {
    using NoiseDataset::NoiseDataset;
    std::optional<DatasetFactoryCall> factory_call() const override {
      return DatasetFactoryCall{"nobody", ""};
    }
  };
  EXPECT_EQ(text(Unregistered(10)),
            "[loader] a worker: [data] expected a registered data set factory (faulty, noise, too few), got "
            "'nobody': call register_dataset_factory() before run_worker_if_asked()");
  struct Shrinking : NoiseDataset {
    using NoiseDataset::NoiseDataset;
    std::optional<DatasetFactoryCall> factory_call() const override {
      return DatasetFactoryCall{"too few", ""};
    }
  };
  EXPECT_EQ(text(Shrinking(10)),
            "[loader] a worker: [worker] expected 10 samples from the factory 'too few', got 3");
}

TEST(OwnDataset, Factories_HaveOneNameEach) {
  EXPECT_EQ(error_text([] { register_dataset_factory("noise", [](auto&) { return nullptr; }); }),
            "[data] expected a new name for a data set factory, got 'noise', which is registered");
  EXPECT_NE(error_text([] { register_dataset_factory("none", {}); }), "");
  EXPECT_EQ(make_dataset({"noise", "7"})->size(), 7);
}

TEST(OwnDataset, HeldByASharedPointer_LivesAsLongAsItsStore) {
  auto dataset = std::make_shared<const NoiseDataset>(10);
  const std::weak_ptr<const NoiseDataset> watch = dataset;
  auto store = dataset->sample_store();
  dataset.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(store->count(), 10);
  store.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(RunWorkerIfAsked, OtherCommandLines_AreNotWorkers) {
  char program[] = "program", worker[] = "worker";
  char* only[] = {program, nullptr};
  char* command[] = {program, worker, nullptr};  // a command of that name, not started by a loader
  EXPECT_FALSE(run_worker_if_asked(1, only));
  EXPECT_FALSE(run_worker_if_asked(2, command));
}

TEST(MakeSource, Store_DecidesWhereImagesAreTransformed) {
  const NoiseDataset own(20);
  const auto array = ImageDataset(own.in_memory()).sample_store();
  const BatchPlan plan{.samples = 20, .batch_size = 4};
  const auto description = [&](const auto& store, const Transform& transform, int workers) {
    return make_source(store, plan, transform, cpu_device, {.workers = workers})->description();
  };
  EXPECT_EQ(description(array, {}, 2), "as they are");
  EXPECT_EQ(description(array, test_recipe(), 0), "on the CPU, between the steps");
  EXPECT_EQ(description(array, test_recipe(), 2), "by 2 threads on the CPU");
  EXPECT_EQ(description(array, training_transform(4), 2), "by 2 threads on the CPU");
  EXPECT_EQ(description(own.sample_store(), {}, 2), "by 2 threads on the CPU");
  EXPECT_EQ(error_text([&] { make_source(array, {.samples = 21}, {}, cpu_device, {}); }),
            "[loader] expected 21 samples, got 20");
  EXPECT_EQ(make_source(array, {.samples = 7}, {}, cpu_device, {})->plan().samples, 7);
}

}  // namespace

void register_test_datasets() {
  register_dataset_factory("noise", [](const std::string& count) -> std::unique_ptr<Dataset> {
    return std::make_unique<NoiseDataset>(std::stoll(count));
  });
  register_dataset_factory("faulty", [](const std::string& fault) -> std::unique_ptr<Dataset> {
    return std::make_unique<FaultyDataset>(fault);
  });
  register_dataset_factory("too few", [](const std::string&) -> std::unique_ptr<Dataset> {
    return std::make_unique<NoiseDataset>(3);
  });
}

}  // namespace tandem
