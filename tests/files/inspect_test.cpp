#include "tandem/files/inspect.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tandem/files/safetensors.h"
#include "tandem/text/table.h"
#include "tests/files/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

const std::filesystem::path golden = std::filesystem::path(source_folder) / "tests/golden/pth";

// 8-bit weights are parameters; in other files integers are counters and masks.
TEST(Inspect, QuantizedModel_CountsIntegers) {
  const TempFolder folder;
  const NamedTensors tensors{{"w", Tensor::from(std::vector<std::uint8_t>{1, 2, 3}, {3})},
                             {"scale", Tensor::from(std::vector<float>{1}, {1})}};
  write_safetensors(folder / "m", {.metadata = {{"tandem.quantization", "int8"}}, .tensors = tensors});
  EXPECT_EQ(inspect_weights(folder / "m").parameters(), 4);
  write_safetensors(folder / "m", {.metadata = {}, .tensors = tensors});
  EXPECT_EQ(inspect_weights(folder / "m").parameters(), 1);
}

TEST(Inspect, Safetensors_SummarizesTensors) {
  const TempFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write_safetensors(folder / "m", {.metadata = {{"model", "mlp"}},
                                   .tensors = {{"w", Tensor::from(std::vector<float>{-1, nan, 4}, {3, 1})},
                                               {"n", Tensor::from(std::vector<std::int64_t>{7}, Shape{})},
                                               {"none", Tensor::empty({0}, DType::f64)}}});
  const WeightFacts facts = inspect_weights(folder / "m");
  EXPECT_EQ(facts.format, "safetensors");
  EXPECT_EQ(facts.parameters(), 3);
  ASSERT_EQ(facts.tensors.size(), 3u);
  EXPECT_EQ(facts.tensors[0].min, -1);
  EXPECT_EQ(facts.tensors[0].max, 4);
  EXPECT_EQ(facts.tensors[0].mean, 1.5);
  EXPECT_EQ(facts.tensors[0].not_finite, 1);
  const std::string text = to_text(facts, {});
  EXPECT_NE(text.find("3 tensors, 3 parameters"), std::string::npos) << text;
  EXPECT_NE(text.find("not finite"), std::string::npos);
  EXPECT_NE(text.find("mlp"), std::string::npos);
  const auto json = nlohmann::json::parse(to_json_text(facts));
  EXPECT_EQ(json["tensors"][0]["shape"], (std::vector<int>{3, 1}));
  EXPECT_EQ(json["tensors"][0]["mean"], 1.5);
  EXPECT_FALSE(json["tensors"][2].contains("min"));
  EXPECT_FALSE(json.contains("names"));
  EXPECT_EQ(json["metadata"]["model"], "mlp");
}

TEST(Inspect, LongTexts_AreCutInTheTable) {
  const TempFolder folder;
  const std::string text(100'000, 'x');
  write_safetensors(folder / "m",
                    {.metadata = {{"k", text}}, .tensors = {{text, Tensor::empty({0}, DType::f32)}}});
  const WeightFacts facts = inspect_weights(folder / "m");
  EXPECT_EQ(facts.metadata.at("k"), text);
  EXPECT_LT(to_text(facts, {}).size(), 40'000u);
}

TEST(Inspect, Pickle_ListsNames) {
  const WeightFacts facts = inspect_weights(golden / "checkpoint.pth");
  EXPECT_EQ(facts.format, "pth zip");
  EXPECT_TRUE(facts.problem.empty());
  EXPECT_EQ(facts.metadata.at("ignored"), "epoch, best, optimizer, arch");
  const std::string text = to_text(facts, {});
  EXPECT_NE(text.find("torch.FloatStorage                    import it     understands it"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Nothing was imported or called"), std::string::npos);
}

TEST(Inspect, RefusedPickle_ListsNames) {
  const WeightFacts facts = inspect_weights(golden / "evil_nested.pth");
  EXPECT_EQ(facts.format, "pickle in a zip archive");
  EXPECT_NE(facts.problem.find("a pickle that calls os.system; nothing was executed"), std::string::npos);
  EXPECT_NE(to_text(facts, {}).find("os.system           call it       refuses it"), std::string::npos)
      << to_text(facts, {});
  const auto json = nlohmann::json::parse(to_json_text(facts));
  EXPECT_EQ(json["names"][0]["name"], "os.system");
  EXPECT_EQ(json["names"][0]["called"], true);
  EXPECT_EQ(json["names"][0]["understood"], false);
  EXPECT_EQ(json["problem"], facts.problem);
}

TEST(Inspect, OtherFiles_Throw) {
  const TempFolder folder;
  put_bytes(folder / "text", "# Tandem\n");
  EXPECT_EQ(error_text([&] { inspect_weights(folder / "text"); }),
            "[pth] " + (folder / "text").string() + ": expected a safetensors or PyTorch file, got neither");
  EXPECT_EQ(error_text([&] { inspect_weights(folder / "none"); }),
            "[inspect] " + (folder / "none").string() + ": no such file");
}

}  // namespace
}  // namespace tandem
