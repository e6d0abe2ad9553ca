// tandem explain, run as a program.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/image/decode.h"
#include "tandem/ops/matmul.h"
#include "tandem/train/explain/explain.h"
#include "tests/apps/photo_program_case.h"

namespace tandem {
namespace {

using ExplainCommand = PhotoProgramCase;

TEST_F(ExplainCommand, SheetPageAndJson_AreWritten) {
  const ProgramResult sheet = run({"explain", "r", "photos", "-o", "s.png", "--count", "5"});
  EXPECT_NE(sheet.err.find("5 of 14 images, evenly chosen\n"), std::string::npos) << sheet.err;
  EXPECT_GT(load_image(folder_ / "s.png").width, 600);
  run({"explain", "r", "photos/red", "-o", "page.html", "--class", "blue", "--method", "layer-cam", "--json",
       "maps.json"});
  const std::string page = get_bytes(folder_ / "page.html");
  for (const char* part : {"LayerCAM", "data:image/jpeg;base64,", "photos/red/photo 100.png",
                           "how much a region speaks for the class", "tandem explain r photos/red"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  const auto maps = nlohmann::json::parse(get_bytes(folder_ / "maps.json"));
  ASSERT_EQ(maps.size(), 7u);
  EXPECT_EQ(maps[0]["explained"], "blue");
  EXPECT_EQ(maps[0]["map"].size(), 4u);
  EXPECT_EQ(maps[0]["map"][0].size(), 4u);
  EXPECT_EQ(maps[0]["covers"], (std::vector<double>{0, 0, 20, 24}));
}

TEST_F(ExplainCommand, Bf16_HasTheBitsOfTheLibraryAndOfPredict) {
  const std::string photo = "photos/red/photo 101.png";
  const auto explained = [&](const char* precision) {
    run({"explain", "r", photo, "-o", "s.png", "--json", "maps.json", "--precision", precision});
    return nlohmann::json::parse(get_bytes(folder_ / "maps.json")).at(0);
  };
  const auto exact = explained("fp32"), fast = explained("bf16");
  Model model = load_model(folder_ / "r");
  const Image image = load_image(folder_ / photo);
  EXPECT_EQ(exact["peak"].get<float>(), explain_image(model, image).peak);
  const MatmulPrecisionScope scope(MatmulPrecision::bf16);
  const Explanation expected = explain_image(model, image);
  std::vector<float> map;
  for (const auto& row : fast["map"])
    for (const auto& value : row) map.push_back(value.get<float>());
  EXPECT_EQ(map, expected.heat.values);
  EXPECT_EQ(fast["peak"].get<float>(), expected.peak);
  EXPECT_NE(fast["peak"], exact["peak"]);
  const ProgramResult predicted = run({"predict", "r", photo, "--json", "--precision", "bf16"});
  EXPECT_EQ(fast["probability"], nlohmann::json::parse(predicted.out).at(0)["probability"]);
  EXPECT_NE(fast["probability"], exact["probability"]);
}

TEST_F(ExplainCommand, UnreadableImages_AreShownUnlessAllAre) {
  std::ofstream(folder_ / "bad.png") << "not an image";
  const ProgramResult mixed = run({"explain", "r", "bad.png", "photos/red/photo 101.png", "-o", "p.html"});
  EXPECT_NE(mixed.err.find("Not read: "), std::string::npos) << mixed.err;
  EXPECT_NE(get_bytes(folder_ / "p.html").find("not read"), std::string::npos);
  const ProgramResult bad = run_program({"explain", "r", "bad.png", "-o", "q.png"}, folder_.path());
  EXPECT_EQ(bad.status, 1);
  EXPECT_TRUE(bad.err.starts_with("tandem: error: [explain] bad.png: ")) << bad.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "q.png"));
  const ProgramResult absent = run_program({"explain", "r", "a.png", "b.png", "-o", "q.png"}, folder_.path());
  EXPECT_EQ(absent.status, 1);
  EXPECT_NE(absent.err.find("none of 2 images can be read, the first a.png: "), std::string::npos)
      << absent.err;
}

TEST_F(ExplainCommand, BadInput_HasOneLine) {
  expect_failure(1, {"explain", "r", "photos", "-o", "sheet.gif"},
                 "[explain] sheet.gif: expected a name that ends in .html or one of .png, .jpg, .jpeg, .ppm, "
                 ".pgm");
  expect_failure(1, {"explain", "r", "photos", "-o", "s.png", "--class", "read"},
                 "[explain] expected a class of the model (blue, red), got 'read'; did you mean 'red'?");
  expect_failure(
      2, {"explain", "r", "photos", "-o", "s.png", "--method", "cam"},
      "--method: expected grad-cam or layer-cam as the method, got 'cam' (see tandem explain --help)");
  expect_failure(2, {"explain", "r", "photos", "-o", "s.png", "--count", "100000"},
                 "--count: expected a whole number from 1 to 200, got '100000' (see tandem explain --help)");
  run({"train", "digits", "--limit", "200", "--epochs", "1", "--out", "d", "--device", "cpu"});
  expect_failure(1, {"explain", "d", "photos", "-o", "s.png"},
                 "[explain] expected a model with convolutions, which class activation maps need, got mlp "
                 "784,200,10 sigmoid, which has none");
}

}  // namespace
}  // namespace tandem
