// Exchanges weights with PyTorch in both directions. Set TANDEM_INTERCHANGE_DIR to a folder, where the files
// remain, on a machine whose python3 has PyTorch. tests/golden/check_interchange.py is PyTorch's side.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tandem/files/weights.h"
#include "tandem/process/run_program.h"
#include "tests/nn/resnet_case.h"
#include "tests/paths.h"

namespace tandem {
namespace {

// The error of python3, or "".
std::string run_python(std::vector<std::string> arguments, const std::filesystem::path& folder) {
  arguments.insert(arguments.begin(), {"/usr/bin/env", "python3"});
  return run_program(arguments, {.folder = folder});
}

std::vector<double> logits_of(ResNet& model, const std::string& name, const Shape& shape) {
  model.eval();
  const NoGrad no_grad;
  return values_of(model(golden::hashed(name, shape)));
}

TEST(Interchange, WeightsAndLogits_AgreeWithPyTorchInBothDirections) {
  const char* given = std::getenv("TANDEM_INTERCHANGE_DIR");
  if (given == nullptr) GTEST_SKIP() << "TANDEM_INTERCHANGE_DIR is not set";
  const std::filesystem::path folder = std::filesystem::absolute(given);
  std::filesystem::create_directories(folder);
  ResNet model({.classes = 7, .seed = 3});
  backward(sum(model(golden::hashed("a training step", {2, 64, 64, 3}))));  // updates the statistics
  const Shape shape{2, 71, 67, 3};
  const auto written = logits_of(model, "interchange", shape);
  std::vector<std::vector<double>> rows;
  for (auto row = written.begin(); row != written.end(); row += 7) rows.emplace_back(row, row + 7);
  write_safetensors(folder / "model.safetensors",
                    {.metadata = {{"maker", "Tandem's test"}}, .tensors = model.state_dict()});
  const nlohmann::json about = {
      {"depth", 18}, {"images", {{"name", "interchange"}, {"shape", {2, 71, 67, 3}}}}, {"logits", rows}};
  std::ofstream(folder / "logits.json") << about;

  if (!run_python({"-c", "import torch"}, folder).empty())
    GTEST_SKIP() << "no PyTorch here; run check_interchange.py elsewhere on the files in " << folder;
  const auto script = std::filesystem::path(source_folder) / "tests/golden/check_interchange.py";
  ASSERT_EQ(run_python({script, folder / "model.safetensors", folder / "logits.json", folder}, folder), "");
  for (const std::string name : {"resnet18", "resnet34"}) {
    std::ifstream file(folder / (name + ".json"));
    const auto expected = nlohmann::json::parse(file);
    std::vector<double> logits;
    for (const std::vector<double> row : expected.at("logits"))
      logits.insert(logits.end(), row.begin(), row.end());
    const std::vector<std::int64_t> images = expected.at("images").at("shape");
    for (const char* ending : {".zip.pth", ".legacy.pth"}) {
      ResNet loaded({.depth = expected.at("depth"), .classes = 5});
      loaded.load_state_dict(read_weights(folder / (name + ending)).tensors);
      const auto actual =
          logits_of(loaded, expected.at("images").at("name"), Shape(std::span<const std::int64_t>(images)));
      EXPECT_LE(relative_error(actual, logits), 1e-4) << name << ending;
    }
  }
}

}  // namespace
}  // namespace tandem
