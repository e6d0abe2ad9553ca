// From a folder of photographs to predictions, run as a program.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tandem/image/decode.h"
#include "tests/apps/program.h"
#include "tests/train/photo_folder.h"

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
    Words words{"train", "photos", "--model", "cnn",      "--image-size", "16",           "--epochs",
                "1",     "--out",  "r",       "--device", "cpu",          "--batch-size", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  TempFolder folder_;
};

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

  const ProgramResult quiet = run({"predict", "r/best.safetensors", "photos/blue", "--csv", "p.csv", "--json",
                                   "p.json", "--sheet", "p.png"});
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(text_of(folder_ / "p.csv").substr(0, 32), "path,class,probability,blue,red\n");
  EXPECT_EQ(nlohmann::json::parse(text_of(folder_ / "p.json")).size(), 7u);
  EXPECT_GT(load_image(folder_ / "p.png").width, 3 * 224);

  const ProgramResult evaluated = run({"eval", "r/best.safetensors", "photos"});
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
  const std::filesystem::path golden = std::filesystem::path(TANDEM_SOURCE_DIR) / "tests/golden/image";
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
TEST_F(PhotoCommand, ResnetOnAFolder_WithoutWeights_SaysSoAndTrains) {
  setenv("https_proxy", "http://127.0.0.1:1", 1);
  setenv("TANDEM_CACHE", (folder_ / "cache").c_str(), 1);
  const ProgramResult trained = run({"train", "photos", "--epochs", "1", "--device", "cpu", "--out", "r"});
  unsetenv("https_proxy");
  unsetenv("TANDEM_CACHE");
  const std::size_t line =
      trained.err.find("Weights: random, because the ImageNet weights of resnet18 could not be fetched");
  ASSERT_NE(line, std::string::npos) << trained.err;
  const std::string said = trained.err.substr(line, trained.err.find('\n', line) - line);
  EXPECT_NE(said.find("10 images are too few to learn a resnet18 from scratch"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with(". Get them with: tandem fetch resnet18")) << said;
  const std::string config = text_of(folder_ / "r/config.toml");
  for (const char* const entry : {"model = \"resnet18\"", "pretrained = \"none\"", "batch_size = 8\n",
                                  "image_size = 64", "schedule = \"cosine\"", "precision = \"fp32\""})
    EXPECT_NE(config.find(entry), std::string::npos) << entry << "\n" << config;
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
