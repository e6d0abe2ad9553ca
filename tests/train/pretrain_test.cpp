#include "tandem/train/pretrain/pretrain.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <set>

#include "tandem/core/check.h"
#include "tandem/files/checkpoint.h"
#include "tandem/nn/cnn.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/finite.h"
#include "tandem/train/load_weights.h"
#include "tandem/train/pretrain/views.h"
#include "tests/files/test_files.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

PretrainOptions small_options(const fs::path& folder, Device device = cpu_device) {
  return {
      .model = "cnn", .steps = 8, .batch_size = 8, .image_size = 16, .device = device, .run_folder = folder};
}

std::string error_of(const PretrainOptions& options) {
  try {
    pretrain(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

// Ends the run before step `step`.
PretrainCallbacks stop_before(int step) {
  return {.stop_signal = [step, calls = 0]() mutable { return calls++ == step ? SIGTERM : 0; }};
}

void expect_same_bits_after_resuming(Device device) {
  const TempFolder folder;
  PretrainOptions options = small_options(folder.path() / "whole", device);
  options.command = "tandem pretrain scenes";
  const PretrainResult whole = pretrain(options);
  options.run_folder = folder.path() / "parts";
  const PretrainResult first = pretrain(options, stop_before(3));
  EXPECT_EQ(first.stopped_by, SIGTERM);
  EXPECT_TRUE(first.weights.empty());
  options = read_pretrain_options(folder.path() / "parts");
  options.device = device;
  const PretrainResult second = pretrain(options);
  EXPECT_EQ(second.stopped_by, 0);
  EXPECT_EQ(get_bytes(second.weights), get_bytes(whole.weights));
  ASSERT_EQ(second.records.size(), whole.records.size());
  for (std::size_t i = 0; i < whole.records.size(); ++i) {
    EXPECT_EQ(second.records[i].step, whole.records[i].step);
    EXPECT_EQ(second.records[i].loss, whole.records[i].loss);
    EXPECT_EQ(second.records[i].attribute_loss, whole.records[i].attribute_loss);
  }
}

TEST(Pretrain, Resuming_GivesTheSameBits) {
  expect_same_bits_after_resuming(cpu_device);
}

TEST(Pretrain, Resuming_GivesTheSameBits_cuda) {
  if (cuda_device_count() == 0) GTEST_SKIP();
  expect_same_bits_after_resuming(cuda_device());
}

// Also in the means of records of several steps.
TEST(Pretrain, ResumingInsideARecord_KeepsItsSums) {
  const TempFolder folder;
  PretrainOptions options = small_options(folder.path() / "whole");
  options.steps = 400;  // records of two steps
  options.batch_size = 2;
  const PretrainResult whole = pretrain(options, stop_before(8));
  options.run_folder = folder.path() / "parts";
  pretrain(options, stop_before(3));
  options.resume = true;
  const PretrainResult parts = pretrain(options, stop_before(5));
  ASSERT_EQ(parts.records.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(parts.records[i].loss, whole.records[i].loss);
}

TEST(Pretrain, Training_LowersTheLoss) {
  const TempFolder folder;
  PretrainOptions options = small_options(folder.path() / "run");
  options.steps = 60;
  options.batch_size = 16;
  options.learning_rate = 20;
  const PretrainResult result = pretrain(options);
  const auto mean = [&](std::size_t begin) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + 10; ++i) sum += result.records[i].loss / 10;
    return sum;
  };
  ASSERT_EQ(result.records.size(), 60u);
  EXPECT_LT(mean(50), mean(0) - 0.3);
  EXPECT_GT(result.records.back().views_per_second, 0);
  for (const char* const file :
       {"config.toml", "log.csv", "last.ckpt", "report.html", "backbone.safetensors"})
    EXPECT_TRUE(fs::exists(folder.path() / "run" / file)) << file;
}

TEST(Pretrain, Weights_FitTheModel) {
  const TempFolder folder;
  const PretrainResult result = pretrain(small_options(folder.path() / "run"));
  Cnn model({.classes = 3, .channels = 3, .seed = 9}), random({.classes = 3, .channels = 3, .seed = 9});
  load_weights(model, result.weights);
  const auto values = [](const Module& of, std::size_t i) {
    return of.state_dict()[i].tensor.to_vector<float>();
  };
  EXPECT_NE(values(model, 0), values(random, 0));
  const TensorFile file = read_safetensors(result.weights);
  EXPECT_EQ(file.metadata.at("tandem.architecture"), "cnn");
  EXPECT_EQ(file.tensors[0].tensor.dtype(), DType::bf16);
  EXPECT_EQ(values(model, 0), cast(file.tensors[0].tensor, DType::f32).to_vector<float>());
}

TEST(Pretrain, Seeds_GiveOtherWeights) {
  const TempFolder folder;
  PretrainOptions options = small_options(folder.path() / "1");
  const std::string one = get_bytes(pretrain(options).weights);
  options.run_folder = folder.path() / "2";
  EXPECT_EQ(get_bytes(pretrain(options).weights), one);
  options.run_folder = folder.path() / "3";
  options.seed = 2;
  EXPECT_NE(get_bytes(pretrain(options).weights), one);
}

TEST(Pretrain, Photographs_NeedNoLabels) {
  const TempFolder folder;
  write_photos(folder.path() / "photos", 6);
  std::ofstream(folder.path() / "photos" / "broken.png") << "not an image";
  PretrainOptions options = small_options(folder.path() / "run");
  options.data = (folder.path() / "photos").string();
  options.batch_size = 0;
  options.workers = 0;
  const std::string one = get_bytes(pretrain(options).weights);
  options.run_folder = folder.path() / "workers";
  options.workers = 2;
  EXPECT_EQ(get_bytes(pretrain(options).weights), one);
}

// Photographs of one color each: a view shows which one it is of.
TEST(PretrainViews, RowsOfBothHalves_AreTheSamePhotograph) {
  const TempFolder folder;
  fs::create_directories(folder.path() / "photos");
  for (int i = 0; i < 8; ++i) {
    Image image = make_image(30, 20, 3);
    std::ranges::fill(image.pixels, static_cast<std::uint8_t>(10 + 30 * i));
    image.pixels[0] = 255;
    save_png(folder.path() / "photos" / (std::to_string(i) + ".png"), image);
  }
  PretrainOptions options = small_options({});
  options.data = (folder.path() / "photos").string();
  options.jitter = 0;
  options.batch_size = 4;
  const auto source = detail::make_view_source(options, {});
  std::set<std::uint8_t> seen;
  for (std::int64_t step = 0; step < 2; ++step) {
    source->prepare(step);
    const auto pixels = source->images().to_vector<std::uint8_t>();
    const std::size_t image = 16 * 16 * 3, last = image - 1;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(pixels[i * image + last], pixels[(i + 4) * image + last]);
      seen.insert(pixels[i * image + last]);
    }
  }
  EXPECT_EQ(seen.size(), 8u);  // a pass shows each once
}

TEST(PretrainViews, TheTwoViews_Differ) {
  const TempFolder folder;
  write_photos(folder.path() / "photos", 4);
  PretrainOptions options = small_options({});
  options.data = (folder.path() / "photos").string();
  const auto source = detail::make_view_source(options, {});
  source->prepare(0);
  const auto pixels = source->images().to_vector<std::uint8_t>();
  const auto half = static_cast<std::ptrdiff_t>(pixels.size() / 2);
  EXPECT_FALSE(std::equal(pixels.begin(), pixels.begin() + half, pixels.begin() + half));
}

TEST(Pretrain, BadInput_IsAnError) {
  const TempFolder folder;
  const PretrainOptions good = small_options(folder.path() / "run");
  PretrainOptions options = good;
  options.batch_size = 1;
  EXPECT_EQ(
      error_of(options),
      "[pretrain] expected a batch of 2 to 32768 images, because each is compared with the others, got 1");
  options = good;
  options.model = "mlp";
  EXPECT_EQ(error_of(options),
            "[pretrain] expected a model with a backbone, such as resnet18 or cnn, got mlp");
  options = good;
  options.batch_size = 32768;
  options.image_size = 4096;
  EXPECT_NE(error_of(options).find("a step of 32768 images of 4096x4096 needs about 439804.7 GB of memory"),
            std::string::npos)
      << error_of(options);
  options = good;
  options.kinds = {"leafs"};
  EXPECT_NE(error_of(options).find("got 'leafs'; did you mean 'leaves'?"), std::string::npos)
      << error_of(options);
  options = good;
  options.data = (folder.path() / "nothing").string();
  EXPECT_NE(error_of(options).find("nothing"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

TEST(Pretrain, TooFewPhotographs_AreAnError) {
  const TempFolder folder;
  fs::create_directories(folder.path() / "photos");
  save_png(folder.path() / "photos" / "one.png", tinted(true, 1));
  std::ofstream(folder.path() / "photos" / "broken.png") << "not an image";
  PretrainOptions options = small_options(folder.path() / "run");
  options.data = (folder.path() / "photos").string();
  EXPECT_NE(error_of(options).find("expected 2 or more images that can be read"), std::string::npos)
      << error_of(options);
  save_png(folder.path() / "photos" / "two.png", tinted(true, 2));
  EXPECT_NE(error_of(options).find("expected a batch of at most the 3 images"), std::string::npos)
      << error_of(options);
}

TEST(Pretrain, WeightsThatAreNotFinite_AreNotSaved) {
  const TempFolder folder;
  PretrainOptions options = small_options(folder.path() / "run");
  options.learning_rate = 1e30;
  options.warmup = 0;
  options.save_every = 0;
  EXPECT_NE(error_of(options).find("not finite after step"), std::string::npos);
  for (const auto& [name, tensor] : read_checkpoint(folder.path() / "run" / "last.ckpt").tensors)
    EXPECT_TRUE(!is_floating(tensor.dtype()) || all_finite({&tensor, 1})) << name;
  EXPECT_FALSE(fs::exists(folder.path() / "run" / "backbone.safetensors"));
}

TEST(Pretrain, OtherOptions_CannotResume) {
  const TempFolder folder;
  PretrainOptions options = small_options(folder.path() / "run");
  pretrain(options, stop_before(2));
  EXPECT_NE(error_of(options).find("is not empty"), std::string::npos);
  options.resume = true;
  options.seed = 3;
  EXPECT_NE(error_of(options).find("belongs to another configuration: seed"), std::string::npos);
}

}  // namespace
}  // namespace tandem
