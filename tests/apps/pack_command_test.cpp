// tandem pack, and the commands that read what it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tandem/files/safetensors.h"
#include "tests/apps/photo_program_case.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class PackCommand : public PhotoProgramCase {
 protected:
  // The columns epoch to val_accuracy.
  std::string losses_of(const std::string& run_folder) {
    std::istringstream log(get_bytes(folder_ / run_folder / "log.csv"));
    std::string kept;
    for (std::string line; std::getline(log, line);) {
      std::size_t end = 0;
      for (int column = 0; column < 5; ++column) end = line.find(',', end + 1);
      kept += line.substr(0, end) + '\n';
    }
    return kept;
  }
  Words train(const std::string& data, const std::string& out, const Words& more = {}) {
    Words words{"train", data,    "--model", "cnn",      "--image-size", "16",           "--epochs",
                "2",     "--out", out,       "--device", "cpu",          "--batch-size", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_same_weights(const std::string& one, const std::string& other) {
    const TensorFile a = read_safetensors(folder_ / one / "best.safetensors");
    const TensorFile b = read_safetensors(folder_ / other / "best.safetensors");
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (std::size_t i = 0; i < a.tensors.size(); ++i) {
      const Tensor &x = a.tensors[i].tensor, &y = b.tensors[i].tensor;
      EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
      ASSERT_EQ(x.numel(), y.numel());
      EXPECT_TRUE(std::equal(x.bytes(), x.bytes() + x.numel() * size_of(x.dtype()), y.bytes()))
          << a.tensors[i].name;
    }
  }
};

TEST_F(PackCommand, TrainingOnOriginals_GivesTheBitsOfTheFolder) {
  put_bytes(folder_ / "photos/red/photo 101.png", "damaged");
  const ProgramResult packed = run({"pack", "photos", "-o", "set.tandem", "--store", "original"});
  EXPECT_TRUE(packed.out.starts_with("set.tandem: 14 images, 0.0 MB (before 0.0 MB)\n")) << packed.out;
  run(train("photos", "a"));
  for (const Words& more : {Words{}, Words{"--workers", "2", "--worker-kind", "process"}}) {
    fs::remove_all(folder_ / "b");
    const ProgramResult result = run(train("set.tandem", "b", more));
    EXPECT_NE(result.err.find("Not read: 1 file: 1 damaged"), std::string::npos) << result.err;
    expect_same_weights("a", "b");
    EXPECT_EQ(losses_of("a"), losses_of("b"));
  }
  run({"train", "--resume", "b"});
}

TEST_F(PackCommand, OtherCommands_ReadTheSet) {
  run({"pack", "photos", "-o", "set.tandem"});
  EXPECT_EQ(run({"predict", "r/best.safetensors", "set.tandem/red", "--csv", "p.csv"}).status, 0);
  EXPECT_NE(get_bytes(folder_ / "p.csv").find("set.tandem/red/photo 100.png,red"), std::string::npos);
  std::string expected = run({"eval", "r/best.safetensors", "photos"}).out;
  expected.replace(expected.find("of photos"), 9, "of set.tandem");
  EXPECT_EQ(run({"eval", "r/best.safetensors", "set.tandem"}).out, expected);
  EXPECT_NE(run({"check", "set.tandem", "--device", "cpu"}).out.find("14"), std::string::npos);
  run({"augment", "set.tandem", "-o", "sheet.png"});
  run({"predict", "r/best.safetensors", "set.tandem/red/photo 100.png"});
}

TEST_F(PackCommand, Inspect_ComparesAllChecksums) {
  run({"pack", "photos", "-o", "set.tandem", "--side", "8", "--json", "pack.json"});
  const auto packed = nlohmann::json::parse(get_bytes(folder_ / "pack.json"));
  EXPECT_EQ(packed["images"], 14);
  EXPECT_EQ(packed["store"], "pixels");
  const ProgramResult fine = run({"inspect", "set.tandem"});
  EXPECT_NE(fine.out.find("14 images, {\"store\":\"pixels\",\"side\":8}"), std::string::npos) << fine.out;
  EXPECT_NE(fine.out.find("All checksums are right.\n"), std::string::npos);
  std::string bytes = get_bytes(folder_ / "set.tandem");
  bytes[100] = static_cast<char>(bytes[100] + 1);
  put_bytes(folder_ / "bad.tandem", bytes);
  const ProgramResult damaged = run_program({"inspect", "bad.tandem"}, folder_.path());
  EXPECT_EQ(damaged.status, 1);
  EXPECT_NE(damaged.out.find("DAMAGED: blue/photo 100.png\n"), std::string::npos) << damaged.out;
  EXPECT_EQ(
      damaged.err,
      "tandem: error: [inspect] bad.tandem: expected images with their checksums, got 1 without, the first "
      "blue/photo 100.png\n");
  const auto json = nlohmann::json::parse(run({"inspect", "set.tandem", "--json"}).out);
  EXPECT_EQ(json["folders"].size(), 2u);
  EXPECT_EQ(json["options"]["side"], 8);
}

TEST_F(PackCommand, BadInput_IsOneLine) {
  run({"pack", "photos", "-o", "set.tandem"});
  expect_failure(1, {"pack", "photos", "-o", "set.tandem"},
                 "[pack] set.tandem: the file exists (--force writes over it)");
  run({"pack", "photos", "-o", "set.tandem", "--force", "--store", "jpeg", "--quality", "50"});
  expect_failure(1, {"pack", "photos", "-o", "set.zip"},
                 "[pack] set.zip: expected a name that ends in .tandem");
  expect_failure(1, {"pack", "none", "-o", "x.tandem"}, "[pack] none: expected a folder of images");
  expect_failure(1, {"pack", "photos", "-o", "none/x.tandem"},
                 "[pack] cannot write none/x.tandem: No such file or directory");
  EXPECT_EQ(run_program({"pack", "photos"}, folder_.path()).status, 2);
  EXPECT_EQ(run_program({"pack", "photos", "-o", "x.tandem", "--side", "0"}, folder_.path()).status, 2);
  EXPECT_EQ(run_program({"pack", "photos", "-o", "x.tandem", "--store", "png"}, folder_.path()).status, 2);
  fs::resize_file(folder_ / "set.tandem", fs::file_size(folder_ / "set.tandem") - 1);
  const ProgramResult cut = run_program({"train", "set.tandem", "--out", "c"}, folder_.path());
  EXPECT_EQ(cut.status, 1);
  EXPECT_TRUE(cut.err.starts_with("tandem: error: [packed] set.tandem: expected ")) << cut.err;
  put_bytes(folder_ / "other.tandem", "text");
  expect_failure(1, {"train", "other.tandem", "--out", "c"},
                 "[packed] other.tandem: expected a set written by tandem pack, got something else");
}

}  // namespace
}  // namespace tandem
