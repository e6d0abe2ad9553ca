// From a folder of photographs to predictions, run as a program.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tandem/image/decode.h"
#include "tandem/train/model_file.h"
#include "tests/apps/program.h"
#include "tests/paths.h"
#include "tests/process/without_capabilities.h"
#include "tests/train/photo_folder.h"
#include "tests/train/shipped_file.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

class PhotoCommand : public testing::Test {
 protected:
  PhotoCommand() { write_photos(folder_ / "photos", 7); }

  ProgramResult run(const Words& words) {
    ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  ProgramResult train(const Words& more) {
    Words words{"train",    "photos", "--model",  "cnn", "--image-size", "16",
                "--epochs", "1",      "--device", "cpu", "--batch-size", "4"};
    words.insert(words.end(), more.begin(), more.end());
    if (std::ranges::find(more, "--out") == more.end()) words.insert(words.end(), {"--out", "r"});
    return run(words);
  }

  TempFolder folder_;
};

TEST_F(PhotoCommand, TrainInTheSandbox_IsTheSame) {
  const auto first_line = [](const ProgramResult& result) {
    return result.out.substr(0, result.out.find('\n'));
  };
  const std::string expected = first_line(train({}));
  EXPECT_EQ(first_line(train({"--out", "threads", "--sandbox", "--workers", "1"})), expected);
  EXPECT_EQ(
      first_line(train({"--out", "processes", "--sandbox", "--workers", "1", "--worker-kind", "process"})),
      expected);
  if (!can_drop_capabilities()) GTEST_SKIP() << "the rest only for root";
  without_capabilities([&] {
    const ProgramResult refused = run_program({"train", "photos", "--sandbox"}, folder_.path());
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.err.find("cannot confine the processes that decode images"), std::string::npos)
        << refused.err;
  });
}

TEST_F(PhotoCommand, Train_Predict_Eval_Work) {
  const ProgramResult trained = train({"--workers", "1", "--worker-kind", "process"});
  double figures[4] = {};
  ASSERT_EQ(std::sscanf(trained.out.c_str(),
                        "Epoch 1: train loss %lf, accuracy %lf %%; val loss %lf, accuracy %lf %%.", figures,
                        figures + 1, figures + 2, figures + 3),
            4)
      << trained.out;
  EXPECT_NE(trained.out.find("\nValidation accuracy: "), std::string::npos) << trained.out;
  EXPECT_NE(trained.err.find("by 1 process on the CPU"), std::string::npos) << trained.err;

  put_bytes(folder_ / "photos/red/bad.png", "no image");
  const ProgramResult predicted = run({"predict", "r/best.safetensors", "photos"});
  EXPECT_EQ(predicted.out.substr(0, 48), "path,class,probability,blue,red,error\nphotos/blu")
      << predicted.out;
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 16);
  EXPECT_NE(predicted.out.find("\nphotos/red/bad.png,,,,,"), std::string::npos) << predicted.out;
  EXPECT_NE(predicted.err.find("Not read: 1 file: 1 damaged; their rows have the reasons"), std::string::npos)
      << predicted.err;

  EXPECT_EQ(run({"predict", "r/best.safetensors", "photos", "--sandbox"}).out, predicted.out);

  const ProgramResult quiet = run({"predict", "r/best.safetensors", "photos/blue", "--csv", "p.csv", "--json",
                                   "p.json", "--sheet", "p.png"});
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(text_of(folder_ / "p.csv").substr(0, 32), "path,class,probability,blue,red\n");
  EXPECT_EQ(nlohmann::json::parse(text_of(folder_ / "p.json")).size(), 7u);
  EXPECT_GT(load_image(folder_ / "p.png").width, 3 * 224);

  const ProgramResult evaluated = run({"eval", "r/best.safetensors", "photos"});
  EXPECT_EQ(run({"eval", "r/best.safetensors", "photos", "--sandbox"}).out, evaluated.out);
  EXPECT_NE(evaluated.out.find("cnn with 2 classes on 14 test images of photos"), std::string::npos)
      << evaluated.out;
  EXPECT_NE(evaluated.out.find("Not read: 1 file: 1 damaged\n  photos/red/bad.png: not an image"),
            std::string::npos)
      << evaluated.out;

  const ProgramResult none =
      run_program({"predict", "r/best.safetensors", "photos/red/bad.png", "--csv", "n.csv"}, folder_.path());
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.err.rfind("tandem: error: [predict] photos/red/bad.png: ", 0), 0u) << none.err;
  EXPECT_EQ(text_of(folder_ / "n.csv").substr(0, 60),
            "path,class,probability,blue,red,error\nphotos/red/bad.png,,,,");
}

// A folder as it comes from cameras and telephones. Whether TIFF and HEIC can be decoded depends on the
// build.
TEST_F(PhotoCommand, MixedFolder_EveryFileIsReadOrCounted) {
  std::filesystem::remove_all(folder_ / "photos");
  write_photos(folder_ / "photos", 15);
  const std::filesystem::path golden = std::filesystem::path(source_folder) / "tests/golden/image";
  const auto add = [&](const char* from, const std::string& to) {
    std::filesystem::copy_file(golden / from, folder_ / "photos" / to);
  };
  const char* const tiffs[] = {"raw.tif", "lzw.tif", "deflate.tif", "tiled.tiff", "gray.tif", "rgb_16.tif"};
  for (int i = 0; i < 6; ++i)
    add(("tiff_" + std::string(tiffs[i])).c_str(), fmt::format("{}/scan{}.TIF", i % 2 ? "red" : "blue", i));
  for (int i = 0; i < 3; ++i)
    add("heic_lossy.heic", fmt::format("{}/IMG_{}.{}", i % 2 ? "red" : "blue", i, i == 0 ? "HEIC" : "heif"));
  put_bytes(folder_ / "photos/red/photo 100.png", "not an image");
  std::filesystem::resize_file(folder_ / "photos/blue/photo 101.png", 60);
  save_png(folder_ / "photos/red/one more.png", tinted(true, 50));  // 29 good ones

  std::vector<std::string> expected;
  if (!can_decode("TIFF")) expected.push_back("6 no decoder for TIFF in this build");
  if (!can_decode("HEIC")) expected.push_back("3 no decoder for HEIC in this build");
  expected.emplace_back("2 damaged");
  const std::size_t count = (can_decode("TIFF") ? 0 : 6) + (can_decode("HEIC") ? 0 : 3) + 2;
  const std::string counts = fmt::format("{} files: {}", count, fmt::join(expected, ", "));

  const ProgramResult trained = train({});
  EXPECT_NE(trained.err.find("Not read: " + counts + "; listed in r/bad-images.csv\n"), std::string::npos)
      << trained.err;
  const std::string list = text_of(folder_ / "r/bad-images.csv");
  EXPECT_EQ(std::size_t(std::count(list.begin(), list.end(), '\n')), 1 + count) << list;
  for (const char* const name : {"photos/red/photo 100.png,damaged,", "photos/blue/photo 101.png,damaged,"})
    EXPECT_NE(list.find(name), std::string::npos) << list;
  EXPECT_EQ(list.find("scan0.TIF,no decoder,") == std::string::npos, can_decode("TIFF")) << list;
  EXPECT_EQ(list.find("IMG_2.heif,no decoder,") == std::string::npos, can_decode("HEIC")) << list;

  const ProgramResult predicted = run({"predict", "r/best.safetensors", "photos"});
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 1 + 40) << predicted.out;
  EXPECT_TRUE(predicted.err.starts_with("Not read: " + counts + "; their rows have the reasons\n"))
      << predicted.err;
  const ProgramResult evaluated = run({"eval", "r/best.safetensors", "photos"});
  EXPECT_NE(evaluated.out.find(fmt::format("on {} test images", 40 - count)), std::string::npos)
      << evaluated.out;
  EXPECT_NE(evaluated.out.find("Not read: " + counts + "\n"), std::string::npos) << evaluated.out;
}

TEST_F(PhotoCommand, Split_SaysWhatItDidNotCopy) {
  put_bytes(folder_ / "photos/red/notes.txt", "x");
  const ProgramResult split = run({"split", "photos", "s"});
  EXPECT_EQ(split.err, "Not copied: 1 file: 1 unknown type; listed in s/not-copied.csv\n");
  EXPECT_EQ(text_of(folder_ / "s/not-copied.csv"),
            "path,kind,reason\nphotos/red/notes.txt,unknown type,unknown type .txt\n");
}

TEST_F(PhotoCommand, Settings_OverrideModelDefaults) {
  put_bytes(folder_ / "run.toml", "model = \"cnn\"\nlr = 0.25\nschedule = \"step\"\n");
  run({"train", "photos", "--config", "run.toml", "--image-size", "16", "--epochs", "1", "--out", "r",
       "--device", "cpu"});
  const std::string config = text_of(folder_ / "r/config.toml");
  for (const char* const line :
       {"model = \"cnn\"", "lr = 0.25", "batch_size = 8", "optimizer = \"adam\"", "schedule = \"step\"",
        "augment = \"crop 0.35 1 0.75 1.3333333333333333, flip 0.5, jitter 0.4 0.4 0.4 0.1\"",
        "image_size = 16", "epochs = 1\n"})
    EXPECT_NE(config.find(line), std::string::npos) << line << "\n" << config;
  const ProgramResult again = run({"train", "--resume", "r", "--epochs", "2"});
  EXPECT_EQ(again.out.rfind("Epoch 2: train loss ", 0), 0u) << again.out;
}

// Without a network and with an empty cache: a proxy that nobody listens on.
class OfflineCommand : public PhotoCommand {
 protected:
  OfflineCommand() {
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    setenv("TANDEM_CACHE", (folder_ / "cache").c_str(), 1);
  }
  ~OfflineCommand() override {
    unsetenv("https_proxy");
    unsetenv("TANDEM_CACHE");
  }

  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  void expect_config(const std::string& run, const Words& entries) {
    const std::string config = text_of(folder_ / run / "config.toml");
    for (const std::string& entry : entries)
      EXPECT_NE(config.find(entry), std::string::npos) << entry << "\n" << config;
  }
  // One line of error that contains `part`, and no run folder.
  void expect_error(const Words& more, const std::string& part) {
    Words words{"train", "photos", "--out", "bad", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_EQ(count(result.err, "tandem: error: "), 1U) << result.err;
    EXPECT_NE(result.err.find(part, result.err.find("tandem: error: ")), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "bad"));
  }

  const std::string not_fetched_ =
      "The ImageNet weights of resnet18 could not be fetched. Get them with: "
      "tandem fetch resnet18\n";
  const std::string says_scenes_ =
      "Weights: scenes, which ship with Tandem, with a new last layer, "
      "batch-norm statistics frozen\n";
  ShippedFile shipped_;
};

TEST_F(OfflineCommand, NoWeightsAtAll_SaysSoAndTrains) {
  const ProgramResult trained = run({"train", "photos", "--epochs", "1", "--device", "cpu", "--out", "r"});
  const std::size_t line =
      trained.err.find("Weights: random, because the ImageNet weights of resnet18 could not be fetched");
  ASSERT_NE(line, std::string::npos) << trained.err;
  const std::string said = trained.err.substr(line, trained.err.find('\n', line) - line);
  EXPECT_NE(said.find("10 images are too few to learn a resnet18 from scratch"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with(". Get them with: tandem fetch resnet18")) << said;
  expect_config("r", {"model = \"resnet18\"", "pretrained = \"none\"", "batch_size = 8\n", "image_size = 64",
                      "schedule = \"cosine\"", "precision = \"fp32\"", "freeze_bn = false"});
}

TEST_F(OfflineCommand, WeightsThatShip_AreUsedAndNamed) {
  shipped_.write();
  const ProgramResult trained = run({"train", "photos", "--epochs", "1", "--image-size", "32", "--schedule",
                                     "constant", "--freeze", "--device", "cpu", "--out", "r"});
  EXPECT_EQ(count(trained.err, not_fetched_), 1U) << trained.err;
  EXPECT_EQ(count(trained.err,
                  "Weights: scenes, which ship with Tandem, with a new last layer, all but the last layer "
                  "frozen, batch-norm statistics frozen\n"),
            1U)
      << trained.err;
  EXPECT_EQ(count(trained.err, "Weights: "), 1U) << trained.err;
  expect_config("r", {"pretrained = \"scenes\"", "freeze_bn = true"});
  EXPECT_NE(text_of(folder_ / "r/report.html")
                .find("scenes, which ship with Tandem, all but the last layer frozen, batch-norm statistics "
                      "frozen"),
            std::string::npos);
  // The checkpoint has the weights: neither the file nor the network is needed again.
  std::filesystem::remove(shipped_.path());
  const ProgramResult again = run({"train", "--resume", "r", "--epochs", "2", "--pretrained", "auto"});
  EXPECT_EQ(again.out.rfind("Epoch 2: train loss ", 0), 0U) << again.out;
  EXPECT_EQ(count(again.err, "eights"), 0U) << again.err;
  expect_config("r", {"pretrained = \"scenes\"", "freeze_bn = true", "epochs = 2"});
}

// A run that was stopped before its first checkpoint starts from the weights that it had.
TEST_F(OfflineCommand, ResumedBeforeACheckpoint_StartsFromTheSameWeights) {
  shipped_.write();
  const Words words{"train",    "photos", "--epochs", "1", "--image-size", "32",  "--pretrained", "auto",
                    "--device", "cpu",    "--out",    "r", "--resume",     "auto"};
  run(words);
  for (const char* const file : {"last.ckpt", "best.safetensors"})
    std::filesystem::remove(folder_ / "r" / file);
  const ProgramResult again = run(words);
  EXPECT_EQ(count(again.err, "could not be fetched"), 0U) << again.err;
  EXPECT_EQ(count(again.err, says_scenes_), 1U) << again.err;
}

TEST_F(OfflineCommand, Ranks_StartFromTheSameWeights) {
  const auto words = [](const char* out, const char* ranks) {
    return Words{"train",    "photos", "--epochs", "1", "--image-size", "32", "--shards", "2",
                 "--device", "cpu",    "--out",    out, "--ranks",      ranks};
  };
  EXPECT_EQ(count(run(words("none", "2")).err, "Weights: random, because "), 1U);
  expect_config("none", {"pretrained = \"none\"", "freeze_bn = false"});
  shipped_.write();
  run(words("one", "1"));
  const ProgramResult trained = run(words("two", "2"));
  EXPECT_EQ(count(trained.err, not_fetched_), 1U) << trained.err;
  EXPECT_EQ(count(trained.err, says_scenes_), 1U) << trained.err;
  expect_config("two", {"pretrained = \"scenes\"", "freeze_bn = true"});
  EXPECT_EQ(
      load_model(folder_ / "one/best.safetensors").module->state_dict().front().tensor.to_vector<float>(),
      load_model(folder_ / "two/best.safetensors").module->state_dict().front().tensor.to_vector<float>());
}

TEST_F(OfflineCommand, Scenes_AreAskedForByName) {
  shipped_.write();
  const ProgramResult trained = run({"train", "photos", "--pretrained", "scenes", "--freeze-bn=false",
                                     "--epochs", "1", "--image-size", "32", "--device", "cpu", "--out", "r"});
  EXPECT_EQ(count(trained.err, "Weights: scenes, which ship with Tandem, with a new last layer\n"), 1U)
      << trained.err;
  EXPECT_EQ(count(trained.err, "fetched"), 0U) << trained.err;
  expect_config("r", {"pretrained = \"scenes\"", "freeze_bn = false"});
}

TEST_F(OfflineCommand, BadWeights_AreOneLine) {
  expect_error({"--pretrained", "scenes"}, "in " + shipped_.folder() + ", found none");
  expect_error(
      {"--pretrained", "scenes", "--model", "resnet34"},
      "expected a model whose weights ship with Tandem (resnet18) for pretrained scenes, got resnet34");
  expect_error({"--pretrained", "scenes", "--model", "cnn"}, "for pretrained scenes, got cnn");
  expect_error({"--pretrained", "imagenet", "--model", "cnn"}, "for pretrained imagenet, got cnn");
  expect_error({"--pretrained", "imagenet"}, "resnet18");
  shipped_.write(shipped_tensors("cnn"));
  for (const char* const name : {"scenes", "auto"})
    expect_error({"--pretrained", name}, shipped_.path().string() + ": not the weights of this model: ");
  shipped_.write();
  expect_error({"--pretrained", "scenes", "--keep-head"}, "missing: fc.weight, fc.bias");
  std::filesystem::resize_file(shipped_.path(), 1000000);
  expect_error({"--ranks", "2"}, shipped_.path().string() + ": ");
}

TEST_F(PhotoCommand, Plates_GetTheRecipeForFewPhotographs) {
  run({"train", "plates", "--limit", "4", "--epochs", "1", "--device", "cpu", "--out", "r"});
  const std::string config = text_of(folder_ / "r/config.toml");
  for (const char* const line :
       {"model = \"resnet18\"", "batch_size = 8\n", "schedule = \"cosine\"", "image_size = 64",
        "augment = \"crop 0.35 1 0.75 1.3333333333333333, flip 0.5, jitter 0.4 0.4 0.4 0.1\""})
    EXPECT_NE(config.find(line), std::string::npos) << line << "\n" << config;
  put_bytes(folder_ / "begin.toml", "data = \"plates\"\npretrained = \"weights.pth\"\n");
  const ProgramResult begun =
      run_program({"train", "--config", "begin.toml", "--device", "cpu", "--out", "p"}, folder_.path());
  EXPECT_NE(begun.err.find("224x224 RGB"), std::string::npos) << begun.err;  // the input size of the weights
  EXPECT_NE(begun.err.find("weights.pth: no such file"), std::string::npos) << begun.err;
}

}  // namespace
}  // namespace tandem
