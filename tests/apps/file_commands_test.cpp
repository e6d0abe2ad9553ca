// The commands inspect, convert, split and plates, run as a user would.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/apps/program.h"
#include "tests/paths.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const std::string golden = std::string(source_folder) + "/tests/golden/pth/";

TEST(InspectCommand, PickleThatCalls_IsListedThenRejected) {
  const ProgramResult result = run_program({"inspect", golden + "evil_reduce.pkl"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.out.find("os.system           call it       refuses it"), std::string::npos) << result.out;
  EXPECT_EQ(result.err, "tandem: error: [pth] " + golden +
                            "evil_reduce.pkl: expected weights only, got a pickle that calls os.system; "
                            "nothing was executed\n");
}

TEST(InspectCommand, Weights_AsTextAndJson) {
  const ProgramResult text = run_program({"inspect", golden + "zip.pth"});
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("16 tensors, 70 parameters"), std::string::npos) << text.out;
  const ProgramResult json = run_program({"inspect", golden + "zip.pth", "--json"});
  EXPECT_EQ(json.status, 0);
  EXPECT_EQ(json.out.front(), '{');
  EXPECT_EQ(run_program({"inspect", "none"}).err, "tandem: error: [inspect] none: no such file\n");
}

TEST(InspectCommand, NamesThatAreOnlyImported_AreSuspicious) {
  const TempFolder folder;
  put_bytes(folder / "m.bin", "ccollections\ndefaultdict\ncos\nsystem\n\x85R.");
  const ProgramResult result = run_program({"inspect", "m.bin"}, folder.path());
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.out.find("SUSPICIOUS: loading this file in Python could run os.system.\n"),
            std::string::npos)
      << result.out;
  EXPECT_EQ(result.err,
            "tandem: error: [pth] m.bin: expected weights only, got a pickle that imports os.system; "
            "nothing was executed\n");
}

TEST(ConvertCommand, PickleBecomesSafetensors) {
  const TempFolder folder;
  const ProgramResult text = run_program({"convert", golden + "zip.pth", "m.safetensors"}, folder.path());
  EXPECT_EQ(text.out, "m.safetensors: 16 tensors of " + golden + "zip.pth (pth zip), 0.0 MB\n");
  EXPECT_NE(run_program({"inspect", "m.safetensors"}, folder.path()).out.find("16 tensors, 70 parameters"),
            std::string::npos);
  const ProgramResult again = run_program({"convert", golden + "zip.pth", "m.safetensors"}, folder.path());
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.err, "tandem: error: [convert] m.safetensors: the file exists (--force writes over it)\n");
  const ProgramResult json = run_program(
      {"convert", golden + "checkpoint.pth", "m.safetensors", "--force", "--json"}, folder.path());
  EXPECT_EQ(json.status, 0);
  EXPECT_NE(json.out.find("\"format\": \"pth zip\""), std::string::npos) << json.out;
}

TEST(ConvertCommand, BadInput_IsOneLine) {
  const TempFolder folder;
  const auto error_of = [&](const std::vector<std::string>& words) {
    const ProgramResult result = run_program(words, folder.path());
    EXPECT_EQ(result.status, 1) << result.out;
    return result.err;
  };
  EXPECT_EQ(error_of({"convert", "none.pth", "m.safetensors"}),
            "tandem: error: [convert] none.pth: no such file\n");
  EXPECT_EQ(error_of({"convert", golden + "zip.pth", "m.pt"}),
            "tandem: error: [convert] m.pt: expected a name that ends in .safetensors\n");
  EXPECT_EQ(error_of({"convert", golden + "evil_eval.pkl", "m.safetensors"}),
            "tandem: error: [pth] " + golden +
                "evil_eval.pkl: expected weights only, got a pickle that calls "
                "builtins.eval; nothing was executed\n");
  EXPECT_NE(error_of({"convert", golden + "zip.pth", "none/m.safetensors"}).find("none/m.safetensors"),
            std::string::npos);
  EXPECT_EQ(run_program({"convert", "x.pth"}, folder.path()).status, 2);
  EXPECT_EQ(folder.count(), 0u);
}

TEST(PlatesCommand, Plates_AreRenderedAndSplit) {
  const TempFolder folder;
  const ProgramResult plates =
      run_program({"plates", "p", "--train", "7", "--test", "2", "--size", "16"}, folder.path());
  EXPECT_EQ(plates.out, "Rendered 7 + 7 training plates and 2 test plates in p.\n");
  const ProgramResult split = run_program({"split", "p/train", "s", "--every", "6"}, folder.path());
  EXPECT_EQ(split.out,
            "Copied 14 images of 2 classes: 10 for training in s/train, 4 for validation in s/val.\n");
  EXPECT_TRUE(fs::exists(folder / "s/val/dirty/dirty-000006.png"));
  const ProgramResult again = run_program({"split", "p/train", "s"}, folder.path());
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.err, "tandem: error: [split] s is not empty: expected a new or empty folder to write to\n");
  EXPECT_EQ(run_program({"split", "p/train", "t", "--every", "1"}, folder.path()).status, 2);
}

}  // namespace
}  // namespace tandem
