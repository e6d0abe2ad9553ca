// Results of commands: --json on every command, the formats of image files, and what a command says it wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tandem/augment/photo_filter.h"
#include "tandem/image/decode.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/example_photo.h"
#include "tests/apps/program.h"
#include "tests/train/photo_folder.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class Output : public testing::Test {
 protected:
  Output() {
    save_png(folder_ / "photo.png", example_photo(36, 52));
    write_photos(folder_ / "photos", 3);
  }

  ProgramResult run(const Words& words) {
    ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  // The JSON of a command is the same on standard output and in a file, where the text stays.
  Json json_of(Words words) {
    Words to_file = words;
    to_file.insert(to_file.end(), {"--json", "result.json"});
    const ProgramResult text = run(to_file);
    EXPECT_NE(text.out.substr(0, 1), "{") << text.out;
    words.emplace_back("--json");
    const ProgramResult printed = run(words);
    EXPECT_EQ(printed.out, text_of(folder_ / "result.json"));
    return Json::parse(printed.out);
  }

  TempFolder folder_;
};

TEST_F(Output, Json_OfCommandsThatWriteImages) {
  const Json filtered = json_of({"filter", "photo.png", "--filter", "ring", "-o", "out.png"});
  EXPECT_EQ(filtered, (Json{{"path", "out.png"}, {"width", 52}, {"height", 36}}));
  const Json augmented = json_of({"augment", "photo.png", "--count", "2", "-o", "out.png"});
  EXPECT_EQ(augmented["path"], "out.png");
  EXPECT_GT(augmented["width"], 3 * 224);
  EXPECT_EQ(run({"filter", "photo.png", "--filter", "ring", "-o", "out.png"}).out, "Wrote out.png (52x36)\n");
}

TEST_F(Output, Json_OfSplitAndPlates) {
  run({"split", "photos", "first", "--json", "split.json"});
  const Json split = Json::parse(run({"split", "photos", "second", "--every", "3", "--json"}).out);
  EXPECT_EQ(split, (Json{{"classes", 2},
                         {"train_images", 4},
                         {"train_folder", "second/train"},
                         {"val_images", 2},
                         {"val_folder", "second/val"},
                         {"not_copied", 0}}));
  EXPECT_EQ(Json::parse(text_of(folder_ / "split.json"))["train_folder"], "first/train");
  const Json plates =
      Json::parse(run({"plates", "p", "--train", "2", "--test", "1", "--size", "16", "--json", "-"}).out);
  EXPECT_EQ(plates, (Json{{"folder", "p"}, {"train_images", 4}, {"test_images", 1}}));
}

TEST_F(Output, Json_OfVerifyDeterminism) {
  const Json json =
      Json::parse(run({"verify-determinism", "digits", "--limit", "40", "-j", "1", "--json"}).out);
  EXPECT_EQ(json["deterministic"], true);
  EXPECT_EQ(json["batches_per_epoch"], 3);
  ASSERT_GE(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][0]["hash"], json["rows"][1]["hash"]);
}

TEST_F(Output, TrainJson_IsOneLinePerEpoch) {
  write_small_digits(folder_ / "data");
  const Words words{"train", "data", "--layers", "784,8,10", "--epochs", "3", "--device", "cpu", "--out"};
  Words printed = words, filed = words;
  printed.insert(printed.end(), {"a", "--json"});
  filed.insert(filed.end(), {"b", "--json", "epochs.jsonl"});
  std::istringstream lines(run(printed).out), file((run(filed), text_of(folder_ / "epochs.jsonl")));
  std::string line, other;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    ASSERT_TRUE(std::getline(lines, line) && std::getline(file, other));
    const Json json = Json::parse(line), same = Json::parse(other);
    EXPECT_EQ(json["epoch"], epoch);
    for (const char* key : {"train_loss", "train_accuracy", "val_loss", "val_accuracy", "learning_rate"})
      EXPECT_EQ(json[key], same[key]) << key;
    EXPECT_GT(json["seconds"], 0);
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
  EXPECT_FALSE(std::getline(file, other)) << other;
}

// The word after --json is not taken for its file if the command reads it.
TEST_F(Output, JsonBeforeInput_DoesNotWriteOverIt) {
  const std::string before = text_of(folder_ / "photo.png");
  const ProgramResult result = run({"filter", "--json", "photo.png", "--filter", "ring", "-o", "out.png"});
  EXPECT_EQ(Json::parse(result.out)["path"], "out.png");
  EXPECT_EQ(text_of(folder_ / "photo.png"), before);
  put_bytes(folder_ / "old.json", "{\"old\": 1}");
  run({"devices", "--json", "old.json"});
  EXPECT_TRUE(Json::parse(text_of(folder_ / "old.json")).contains("cpu"));
  run({"devices", "--json=photo.png"});  // with = any name is meant
  EXPECT_TRUE(Json::parse(text_of(folder_ / "photo.png")).contains("cpu"));
}

TEST_F(Output, Filter_EndingDecidesTheFormat) {
  const Image expected = apply_filter(example_photo(36, 52), builtin_filters().get("sobel1"));
  const auto written = [&](const std::string& name) {
    run({"filter", "photo.png", "--filter", "sobel1", "-o", name});
    return text_of(folder_ / name);
  };
  EXPECT_EQ(written("out.PNG").substr(0, 4), "\x89PNG");
  EXPECT_EQ(written("out.pgm").substr(0, 13), "P5\n52 36\n255\n");
  EXPECT_EQ(written("out.ppm").substr(0, 13), "P6\n52 36\n255\n");
  EXPECT_EQ(load_image(folder_ / "out.pgm"), expected);
  for (const char* name : {"out.jpg", "out.jpeg"}) {
    EXPECT_EQ(written(name).substr(0, 3), "\xFF\xD8\xFF");
    const Image read = load_image(folder_ / name);
    ASSERT_EQ(read.pixels.size(), expected.pixels.size());
    double difference = 0;
    for (std::size_t i = 0; i < read.pixels.size(); ++i)
      difference += std::abs(read.pixels[i] - expected.pixels[i]);
    EXPECT_LT(difference / static_cast<double>(read.pixels.size()), 3);
  }
}

TEST_F(Output, Filter_NpyAndCsvHoldUnscaledValues) {
  const Tensor values = filter_values(example_photo(36, 52), builtin_filters().get("sobel1"));
  const std::vector<float> expected = values.to_vector<float>();
  run({"filter", "photo.png", "--filter", "sobel1", "-o", "out.npy"});
  const std::string npy = text_of(folder_ / "out.npy");
  ASSERT_EQ(npy.size(), 128 + expected.size() * sizeof(float));
  EXPECT_NE(npy.find("{'descr': '<f4', 'fortran_order': False, 'shape': (36, 52, ), }"), std::string::npos);
  EXPECT_EQ(std::memcmp(npy.data() + 128, expected.data(), expected.size() * sizeof(float)), 0);
  run({"filter", "photo.png", "--filter", "sobel1", "-o", "out.csv"});
  std::istringstream csv(text_of(folder_ / "out.csv"));
  std::string line;
  std::size_t i = 0;
  for (int row = 0; row < 36; ++row) {
    ASSERT_TRUE(std::getline(csv, line));
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ','); ++i) EXPECT_EQ(std::stof(cell), expected[i]);
    EXPECT_EQ(i, 52u * static_cast<std::size_t>(row + 1));
  }
}

TEST_F(Output, UnknownEndings_AreErrors) {
  const auto error = [&](const Words& words) {
    const std::size_t files = folder_.count();
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(folder_.count(), files);
    return result.err;
  };
  EXPECT_EQ(error({"filter", "photo.png", "--filter", "ring", "-o", "out.gif"}),
            "tandem: error: [filter] out.gif: expected a name that ends in one of .png, .jpg, .jpeg, .ppm, "
            ".pgm, .npy, .csv\n");
  EXPECT_EQ(error({"filter", "photo.png", "--filter", "all", "-o", "out.npy"}),
            "tandem: error: [filter] out.npy: expected an image's name for the sheet of all filters\n");
  EXPECT_EQ(error({"augment", "photo.png", "-o", "out"}),
            "tandem: error: [augment] out: expected a name that ends in one of .png, .jpg, .jpeg, .ppm, "
            ".pgm\n");
}

TEST_F(Output, Augment_DataSetOrFolder_ShowsATrainingBatch) {
  run({"augment", "photos", "--count", "4", "-o", "photos.png"});
  const Image photos = load_image(folder_ / "photos.png");
  EXPECT_EQ(photos.width, 20 + 2 * (224 + 20));
  run({"augment", "digits", "--count", "9", "-o", "digits.png"});
  const Image digits = load_image(folder_ / "digits.png");
  EXPECT_EQ(digits.width, 20 + 3 * (112 + 20));
  run({"augment", "digits", "--count", "9", "--augment", "none", "-o", "plain.png"});
  EXPECT_NE(load_image(folder_ / "plain.png"), digits);
}

TEST_F(Output, Predict_SheetLabelsAndSummary) {
  run({"train", "photos", "--model", "cnn", "--image-size", "16", "--epochs", "1", "--out", "r", "--device",
       "cpu"});
  const ProgramResult result = run({"predict", "r/best.safetensors", "photos", "--sheet", "sheet.jpg",
                                    "--count", "4", "--labels", "labels.csv"});
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(load_image(folder_ / "sheet.jpg").width, 20 + 2 * (224 + 20));
  EXPECT_NE(result.err.find("The sheet shows 4 of 6 images, evenly chosen\n"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("6 images in "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("; of 6 in folders of their class "), std::string::npos) << result.err;
  std::istringstream rows(text_of(folder_ / "labels.csv"));
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line, "id,label");
  int count = 0;
  for (; std::getline(rows, line); ++count) {
    EXPECT_EQ(line.find('/'), std::string::npos) << line;
    EXPECT_EQ(line.find(".png"), std::string::npos) << line;
    EXPECT_TRUE(line.ends_with(",red") || line.ends_with(",blue")) << line;
  }
  EXPECT_EQ(count, 6);
  EXPECT_EQ(run({"predict", "r/best.safetensors", "photos", "--quiet"}).err, "");
}

TEST_F(Output, Quiet_HidesMessagesButNotWarningsAndErrors) {
  write_small_digits(folder_ / "data");
  const Words words{"train", "data", "--layers", "784,8,10", "--epochs", "1", "--device", "cpu", "--quiet"};
  const ProgramResult result = run(words);
  EXPECT_EQ(result.err.rfind("Warning: ", 0), 0u) << result.err;  // of few validation images
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.starts_with("Warning: ")) << line;
  EXPECT_NE(result.out.find("Epoch 1, accuracy "), std::string::npos);
  const ProgramResult error = run_program({"train", "nowhere", "-q"}, folder_.path());
  EXPECT_EQ(error.status, 1);
  EXPECT_EQ(error.err.rfind("tandem: error: ", 0), 0u) << error.err;
}

// The names of torchvision and timm.
TEST_F(Output, Train_AcceptsKnownAliases) {
  write_small_digits(folder_ / "data");
  run({"train",           "data", "--arch", "mlp",  "-b",       "5",        "--opt",      "adam",
       "--learning-rate", "0.01", "--wd",   "0.02", "--sched",  "cosine",   "--patience", "7",
       "--warmup-epochs", "0.5",  "-j",     "0",    "--layers", "784,8,10", "--epochs",   "1",
       "--threads",       "1",    "-o",     "r",    "--device", "cpu"});
  const std::string config = text_of(folder_ / "r/config.toml");
  for (const char* line :
       {"batch_size = 5\n", "optimizer = \"adam\"\n", "lr = 0.01\n", "weight_decay = 0.02\n",
        "schedule = \"cosine\"\n", "early_stopping = 7\n", "warmup_epochs = 0.5\n", "workers = \"0\"\n"})
    EXPECT_NE(config.find(line), std::string::npos) << line << config;
}

TEST_F(Output, ResumeAuto_StartsThenContinues) {
  write_small_digits(folder_ / "data");
  const auto train = [&](const std::string& epochs) {
    return run({"train", "data", "--layers", "784,8,10", "--device", "cpu", "--out", "r", "--resume", "auto",
                "--epochs", epochs})
        .out;
  };
  EXPECT_EQ(train("1").rfind("Epoch 1, ", 0), 0u);
  EXPECT_EQ(train("2").rfind("Epoch 2, ", 0), 0u);
  EXPECT_EQ(run_program({"train", "data", "--resume", "auto"}, folder_.path()).status, 2);
}

TEST_F(Output, DataSetWithTheNameOfAFolder_IsSaid) {
  const std::string of_digits = "Using the data set digits, not the folder digits: ./digits is the folder\n",
                    of_scenes = "Using the data set scenes, not the folder scenes: ./scenes is the folder\n";
  const Words train{"train", "digits",   "--limit", "20",        "--epochs", "1",    "--seed",
                    "1",     "--device", "cpu",     "--augment", "none",     "--out"};
  const auto train_to = [&](const std::string& out, const std::string& data) {
    Words words = train;
    words[1] = data;
    words.push_back(out);
    return run_program(words, folder_.path());
  };
  EXPECT_EQ(train_to("before", "digits").err.find("Using the data set"), std::string::npos);
  for (const char* name : {"digits", "scenes"}) std::filesystem::create_directory(folder_ / name);
  const ProgramResult trained = train_to("run", "digits");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_NE(trained.err.find(of_digits), std::string::npos) << trained.err;
  const ProgramResult of_folder = train_to("other", "./digits");
  EXPECT_EQ(of_folder.status, 1);
  EXPECT_EQ(of_folder.err.find("Using the data set"), std::string::npos) << of_folder.err;

  const std::vector<std::pair<Words, std::string>> commands{
      {{"eval", "run", "digits"}, of_digits},
      {{"probe", "run", "digits", "--limit", "10", "--draws", "1", "--per-class", "1"}, of_digits},
      {{"augment", "scenes", "--count", "1", "-o", "a.png"}, of_scenes},
      {{"verify-determinism", "digits", "--limit", "20", "--workers", "1"}, of_digits},
      {{"study", "workers", "--data", "digits", "--json", "missing/a.json"}, of_digits},
      {{"pretrain", "scenes", "--model", "cnn", "--steps", "1", "--batch-size", "2", "--image-size", "16",
        "--device", "cpu", "--out", "pretrained"},
       of_scenes}};
  for (const auto& [words, line] : commands) {
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_NE(result.err.find(line), std::string::npos) << words[0] << ": " << result.err;
    EXPECT_EQ(result.out.find("Using the data set"), std::string::npos) << words[0];
  }
}

}  // namespace
}  // namespace tandem
