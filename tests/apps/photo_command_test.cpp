// From a folder of photographs to predictions, run as a program.
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
  EXPECT_NE(predicted.err.find("1 of 15 images could not be read, the first photos/red/bad.png: "),
            std::string::npos)
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
  EXPECT_NE(evaluated.out.find("Left out: 1 that cannot be read"), std::string::npos) << evaluated.out;

  const ProgramResult none =
      run_program({"predict", "r/best.safetensors", "photos/red/bad.png", "--csv", "n.csv"}, folder_.path());
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.err.rfind("tandem: error: [predict] photos/red/bad.png: ", 0), 0u) << none.err;
  EXPECT_EQ(text_of(folder_ / "n.csv").substr(0, 60),
            "path,class,probability,blue,red,error\nphotos/red/bad.png,,,,");
}

TEST_F(PhotoCommand, Settings_OverrideModelDefaults) {
  put_bytes(folder_ / "run.toml", "model = \"cnn\"\nlr = 0.25\nschedule = \"step\"\n");
  run({"train", "photos", "--config", "run.toml", "--image-size", "16", "--epochs", "1", "--out", "r",
       "--device", "cpu"});
  const std::string config = text_of(folder_ / "r/config.toml");
  for (const char* const line :
       {"model = \"cnn\"", "lr = 0.25", "batch_size = 64", "optimizer = \"adam\"", "schedule = \"step\"",
        "augment = \"crop 0.08 1 0.75 1.3333333333333333, flip 0.5\"", "image_size = 16", "epochs = 1\n"})
    EXPECT_NE(config.find(line), std::string::npos) << line << "\n" << config;
  const ProgramResult again = run({"train", "--resume", "r", "--epochs", "2"});
  EXPECT_EQ(again.out.rfind("Epoch 2: train loss ", 0), 0u) << again.out;
}

TEST_F(PhotoCommand, Plates_HaveTheirOwnDefaults) {
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
