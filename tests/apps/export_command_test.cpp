// A model exported to ONNX and inspected, run as a program.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tandem/files/onnx/protobuf.h"
#include "tests/apps/photo_program_case.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

using ExportCommand = PhotoProgramCase;

TEST_F(ExportCommand, Letterbox_IsStoredPredictedAndExported) {
  run({"train", "photos", "--model", "cnn", "--image-size", "16", "--epochs", "1", "--fit", "letterbox",
       "--out", "l", "--device", "cpu", "--batch-size", "4"});
  const ProgramResult exported = run({"export", "l", "-o", "l.onnx", "--images", "photos", "--count", "6"});
  EXPECT_NE(exported.out.find("Verified with 6 images: the same class for 6"), std::string::npos)
      << exported.out;
  const auto json = nlohmann::json::parse(run({"inspect", "l.onnx", "--json"}).out);
  EXPECT_EQ(json["metadata"]["tandem.transform"], "letterbox");
  EXPECT_NE(json["metadata"]["tandem.preprocessing"].get<std::string>().find(
                "with the aspect ratio kept, centered on gray 0"),
            std::string::npos);
  expect_failure(2, {"train", "photos", "--fit", "pad"},
                 "--fit: expected one of stretch, crop, letterbox, got 'pad' (see tandem train --help)");
}

TEST_F(ExportCommand, Model_IsVerifiedAndInspected) {
  const ProgramResult exported = run({"export", "r", "-o", "m.onnx", "--images", "photos", "--count", "5"});
  EXPECT_TRUE(exported.out.starts_with("m.onnx: ONNX, opset 18, ")) << exported.out;
  EXPECT_NE(
      exported.out.find("Verified with 5 images: the same class for 5, probabilities differ by at most "),
      std::string::npos)
      << exported.out;
  const ProgramResult text = run({"inspect", "m.onnx"});
  for (const char* part :
       {"m.onnx: ONNX, opset 18", "input image", "u8 [height, width, 3]", "output probabilities", "f32 [2]",
        "MatMulInteger", R"(["blue","red"])", "Nothing was computed"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  const auto json = nlohmann::json::parse(run({"inspect", "m.onnx", "--json"}).out);
  EXPECT_EQ(json["format"], "onnx");
  EXPECT_EQ(json["metadata"]["tandem.transform"], "resize");

  fs::rename(folder_ / "m.onnx", folder_ / "renamed");  // known by its contents
  EXPECT_EQ(nlohmann::json::parse(run({"inspect", "renamed", "--json"}).out)["format"], "onnx");

  const auto report = nlohmann::json::parse(
      run({"export", "r", "-o", "t.onnx", "--input", "tensor", "--weights", "fp16", "--json"}).out);
  EXPECT_EQ(report["images"], 8);
  EXPECT_LE(report["max_difference"], 0.05);
  EXPECT_NE(run({"inspect", "t.onnx"}).out.find("f32 [batch, 3, 16, 16]"), std::string::npos);
}

TEST_F(ExportCommand, BadInput_IsOneLine) {
  expect_failure(1, {"export", "r", "-o", "m.pt"}, "[export] m.pt: expected a name that ends in .onnx");
  expect_failure(1, {"export", "nothing", "-o", "m.onnx"}, "[safetensors] nothing: no such file");
  EXPECT_EQ(run_program({"export", "r"}, folder_.path()).status, 2);
  EXPECT_EQ(run_program({"export", "r", "-o", "m.onnx", "--weights", "int3"}, folder_.path()).status, 2);
  EXPECT_EQ(run_program({"export", "r", "-o", "m.onnx", "--input", "text"}, folder_.path()).status, 2);
  put_bytes(folder_ / "bad.png", "no image");
  EXPECT_EQ(run_program({"export", "r", "-o", "m.onnx", "--images", "bad.png"}, folder_.path()).status, 1);
  EXPECT_FALSE(fs::exists(folder_ / "m.onnx"));
  expect_failure(1, {"export", "r", "-o", "none/m.onnx"},
                 "[export] cannot write none/m.onnx: No such file or directory");
}

TEST_F(ExportCommand, InspectOfBadFiles_IsOneLine) {
  put_bytes(folder_ / "empty.onnx", "");
  expect_failure(1, {"inspect", "empty.onnx"}, "[onnx] empty.onnx: the file is empty");
  expect_failure(1, {"inspect", "none.onnx"}, "[inspect] none.onnx: no such file");
  run({"export", "r", "-o", "m.onnx"});
  put_bytes(folder_ / "cut.onnx", text_of(folder_ / "m.onnx").substr(0, 100'000));
  const ProgramResult cut = run_program({"inspect", "cut.onnx"}, folder_.path());
  EXPECT_EQ(cut.status, 1);
  EXPECT_TRUE(cut.err.starts_with("tandem: error: [onnx] cut.onnx: the file is truncated")) << cut.err;

  ProtoWriter first, second, graph, model;  // a = Relu(b), b = Relu(a)
  for (auto [node, names] : {std::pair{&first, "ba"}, std::pair{&second, "ab"}}) {
    node->add_bytes(1, std::string(1, names[0]));
    node->add_bytes(2, std::string(1, names[1]));
    node->add_bytes(4, "Relu");
    graph.add_message(1, *node);
  }
  model.add_int(1, 8);
  model.add_message(7, graph);
  put_bytes(folder_ / "cycle.onnx", model.bytes());
  const ProgramResult cycle = run_program({"inspect", "cycle.onnx"}, folder_.path());
  EXPECT_EQ(cycle.status, 1);
  EXPECT_NE(cycle.out.find("Relu"), std::string::npos) << cycle.out;
  EXPECT_EQ(
      cycle.err,
      "tandem: error: [onnx] cycle.onnx: the node 'a' needs a value that is computed after it: a cycle, or "
      "nodes out of order\n");
}

}  // namespace
}  // namespace tandem
