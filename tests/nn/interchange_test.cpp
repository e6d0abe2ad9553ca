// Weights go to PyTorch and back: set TANDEM_INTERCHANGE_DIR to a folder (files are left there) on a machine
// whose /usr/bin/python3 has PyTorch. tests/golden/check_interchange.py is PyTorch's side.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tandem/files/spawn.h"
#include "tandem/files/weights.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

constexpr const char* python = "/usr/bin/python3";

std::vector<double> logits_of(ResNet& model, const std::string& name, const Shape& shape) {
  model.eval();
  const NoGrad no_grad;
  return values_of(model(golden::hashed(name, shape)));
}

TEST(Interchange, PyTorchReadsWhatTandemWritesAndTheOtherWay) {
  const char* given = std::getenv("TANDEM_INTERCHANGE_DIR");
  if (given == nullptr) GTEST_SKIP() << "TANDEM_INTERCHANGE_DIR is not set";
  const std::filesystem::path folder = std::filesystem::absolute(given);
  std::filesystem::create_directories(folder);
  ResNet model({.classes = 7, .seed = 3});
  backward(sum(model(golden::hashed("a training step", {2, 64, 64, 3}))));  // statistics move
  const Shape shape{2, 71, 67, 3};
  const auto written = logits_of(model, "interchange", shape);
  std::vector<std::vector<double>> rows;
  for (auto row = written.begin(); row != written.end(); row += 7) rows.emplace_back(row, row + 7);
  write_safetensors(folder / "model.safetensors",
                    {.metadata = {{"maker", "Tandem's test"}}, .tensors = model.state_dict()});
  const nlohmann::json about = {
      {"depth", 18}, {"images", {{"name", "interchange"}, {"shape", {2, 71, 67, 3}}}}, {"logits", rows}};
  std::ofstream(folder / "logits.json") << about;

  if (!spawn({python, "-c", "import torch"}, {.folder = folder}).empty())
    GTEST_SKIP() << "no PyTorch; to be done elsewhere: check_interchange.py on the files in " << folder;
  const auto script = std::filesystem::path(TANDEM_SOURCE_DIR) / "tests/golden/check_interchange.py";
  ASSERT_EQ(spawn({python, script, folder / "model.safetensors", folder / "logits.json", folder},
                  {.folder = folder}),
            "");
  std::ifstream file(folder / "expected.json");
  const auto expected = nlohmann::json::parse(file);
  std::vector<double> logits;
  for (const std::vector<double> row : expected.at("logits"))
    logits.insert(logits.end(), row.begin(), row.end());
  const std::vector<std::int64_t> images = expected.at("images").at("shape");
  for (const char* name : {"zip.pth", "legacy.pth"}) {
    ResNet loaded({.depth = expected.at("depth"), .classes = 5});
    loaded.load_state_dict(read_weights(folder / name).tensors);
    const auto actual =
        logits_of(loaded, expected.at("images").at("name"), Shape(std::span<const std::int64_t>(images)));
    EXPECT_LE(relative_error(actual, logits), 1e-4) << name;
  }
}

}  // namespace
}  // namespace tandem
