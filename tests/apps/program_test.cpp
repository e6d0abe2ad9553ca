// The program as a whole: devices, studies, and what goes to which stream.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/core/build_info.h"
#include "tandem/device/device.h"
#include "tandem/device/on_backend.h"
#include "tandem/image/decode.h"
#include "tandem/image/encode_png.h"
#include "tandem/text/utf8.h"
#include "tandem/train/model_file.h"
#include "tests/apps/program.h"
#include "tests/core/sanitized.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Program, Version_HasCommitAndBuildOptions) {
  const ProgramResult result = run_program({"--version"});
  EXPECT_EQ(result.status, 0);
  const std::string first = fmt::format("tandem {} (commit {})\n", build_info().version, build_info().commit);
  EXPECT_EQ(result.out.rfind(first, 0), 0u) << result.out;
  EXPECT_EQ(first.rfind("tandem 0.", 0), 0u) << first;
  EXPECT_TRUE(contains(result.out, has_cuda ? ", CUDA 1" : ", no CUDA")) << result.out;
  EXPECT_TRUE(contains(result.out, "WebP")) << result.out;
}

// Each library costs a start of the program, and must be on the machine. Large or optional ones are opened
// when they are needed (core/shared_library.h).
TEST(Program, Start_LoadsFewLibraries) {
  setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);  // the dynamic linker lists the libraries instead of starting
  const ProgramResult result = run_program({"--version"});
  unsetenv("LD_TRACE_LOADED_OBJECTS");
  ASSERT_EQ(result.status, 0);
  for (const char* name : {"libcuda", "libcublas", "libcudnn", "libcurl", "libheif", "libtiff"})
    EXPECT_FALSE(contains(result.out, name)) << result.out;
  const auto count = std::count(result.out.begin(), result.out.end(), '\n');
  EXPECT_GT(count, 3) << result.out;
  const int sanitizers = address_sanitized || thread_sanitized ? 4 : 0;
  EXPECT_LT(count - 1 - sanitizers, 15) << result.out;  // 1: the vdso, which is not a file
}

TEST(Program, Devices_AreListed) {
  const ProgramResult result = run_program({"devices"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(contains(result.out, "cpu ")) << result.out;
  EXPECT_TRUE(contains(result.out, "cores usable")) << result.out;
  EXPECT_EQ(contains(result.out, "cuda:0"), cuda_device_count() > 0) << result.out;
  EXPECT_EQ(contains(result.out, "No CUDA device: "), cuda_device_count() == 0) << result.out;
}

TEST(Program, VerifyDeterminism_OnDigits) {
  const ProgramResult result =
      run_program({"verify-determinism", "digits", "--limit", "700", "--workers", "3", "--batch-size", "9"});
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(contains(result.out, "digits: 700 images, 28x28 gray; recipe rotate -12 12")) << result.out;
  for (const char* row :
       {"no workers", "1 thread ", "2 threads ", "3 threads ", "3 processes ", "3 threads, resumed halfway"})
    EXPECT_TRUE(contains(result.out, row)) << result.out;
  EXPECT_TRUE(contains(result.out, "Every batch is the same in every configuration.")) << result.out;
  EXPECT_FALSE(contains(result.out, "DIFFERENT")) << result.out;
}

TEST(Program, VerifyDeterminism_OnRanks) {
  const ProgramResult result =
      run_program({"verify-determinism", "digits", "--limit", "200", "--workers", "1", "--batch-size", "8",
                   "--ranks", "1,2,3", "--augment", "rotate -10 10"});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  for (const char* row : {"one process ", "2 ranks ", "3 ranks "})
    EXPECT_TRUE(contains(result.out, row)) << result.out;
  EXPECT_TRUE(contains(result.out, "The model is the same on every number of ranks")) << result.out;
  EXPECT_FALSE(contains(result.out, "DIFFERENT")) << result.out;
}

TEST(Program, VerifyDeterminism_OnPhotographs) {
  const ProgramResult result =
      run_program({"verify-determinism", "plates", "--limit", "6", "--batch-size", "4", "--workers", "2"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "plates: 6 images, 224x224 RGB; recipe crop 0.08 1 ")) << result.out;
  EXPECT_TRUE(contains(result.out, "Every batch is the same in every configuration.")) << result.out;
  EXPECT_EQ(
      run_program({"verify-determinism", "plates", "--augment", "digits"}).err,
      "tandem: error: [train] expected a recipe for photographs, such as photo or 'crop, flip 0.5', got "
      "'rotate -12 12, shift -2 2, skew -0.1 0.1'\n");
}

TEST(Program, Devices_AreListedAsJson) {
  const ProgramResult result = run_program({"devices", "--json"});
  EXPECT_EQ(result.status, 0);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["cpu"]["device"], "cpu");
  for (const char* key : {"name", "architecture", "simd"}) EXPECT_NE(json["cpu"][key], "") << key;
  EXPECT_GE(json["cpu"]["usable_cores"], 1);
  EXPECT_GE(json["cpu"]["cores"], json["cpu"]["usable_cores"]);
  EXPECT_GT(json["cpu"]["memory_bytes"], 1 << 20);
  EXPECT_EQ(json["cuda"]["devices"].size(), static_cast<std::size_t>(cuda_device_count()));
  EXPECT_EQ(json["cuda"].contains("problem"), cuda_device_count() == 0);
}

// What the program writes to a terminal, up to 4096 bytes.
std::string terminal_output(const Words& words, const std::filesystem::path& folder, bool no_color) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_TRUE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(run_program(words, folder, slave, slave, no_color), 0);
  char text[4096];
  const ssize_t got = read(master, text, sizeof text);
  close(slave);
  close(master);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

TEST(Program, Color_OnlyOnTerminalWithoutNoColor) {
  EXPECT_FALSE(contains(run_program({"devices"}).out, "\x1b["));
  const TempFolder folder;
  EXPECT_TRUE(contains(terminal_output({"devices"}, folder.path(), false), "\x1b["));
  EXPECT_FALSE(contains(terminal_output({"devices"}, folder.path(), true), "\x1b["));
}

TEST(Program, NamesFromFiles_DoNotControlTheTerminal) {
  const TempFolder folder;
  const ModelInfo info{.architecture = {.layers = {6, 4, 2}},
                       .classes = {"a\x1b]0;title\a", "b\x1b[2J\r"},
                       .height = 2,
                       .width = 3,
                       .channels = 1};
  save_model(folder / "m.safetensors", *make_model(info.architecture, 3), info);
  save_png(folder / "p\x1b[2J\u009b2J.png",
           {.height = 2, .width = 3, .channels = 1, .pixels = {1, 2, 3, 4, 5, 6}});
  const Words words{"predict", "--quiet", "m.safetensors", "p\x1b[2J\u009b2J.png"};
  const std::string shown = terminal_output(words, folder.path(), true);
  EXPECT_TRUE(contains(shown, "path,class,probability,\"a ]0;title \",\"b [2J \"\r\np [2J 2J.png,")) << shown;
  EXPECT_FALSE(contains(shown, "\x1b")) << shown;
  EXPECT_FALSE(contains(shown, "\u009b")) << shown;
  const std::string piped = run_program(words, folder.path()).out;  // a path is for other programs
  EXPECT_TRUE(contains(piped, "path,class,probability,\"a ]0;title \",\"b [2J \"\np\x1b[2J\u009b2J.png,"))
      << piped;
}

TEST(Program, FullDiskForStandardOutput_IsAnError) {
  const TempFolder folder;
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const int err = open((folder / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(run_program({"devices", "--json"}, folder.path(), full, err, false), 1);
  close(full);
  close(err);
  EXPECT_EQ(text_of(folder / "err"),
            "tandem: error: cannot write to standard output: No space left on device\n");
}

TEST(StudyCommand, Json_HasTheSpecifiedKeys) {
  const TempFolder folder;
  const ProgramResult result = run_program(
      {"study", "max", "--quick", "--cases", "10x10 i32,7x3 f32", "--json", "F.json"}, folder.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(folder.count(), 1u);
  const Json json = Json::parse(text_of(folder / "F.json"));
  EXPECT_EQ(json["study"], "max");
  EXPECT_TRUE(json["machine"].is_object());
  EXPECT_FALSE(json["machine"].empty());
  EXPECT_EQ(json["provenance"]["command"],
            "tandem study max --quick --cases '10x10 i32,7x3 f32' --json F.json");
  EXPECT_EQ(json["provenance"]["seed"], "1");
  EXPECT_TRUE(json["versions"].contains("simd"));
  Words versions;
  for (const Json& row : json["rows"]) {
    if (row["case"] == "10x10 i32") versions.push_back(row["version"]);
    for (const char* key : {"median_ms", "min_ms", "max_ms", "speedup", "gb_per_s", "share_of_peak"})
      EXPECT_GT(row[key], 0.0) << key << row;
    EXPECT_EQ(row["agrees"], true);
    EXPECT_EQ(row["max_error"], 0.0);
    EXPECT_FALSE(row.contains("gflop_per_s"));
    EXPECT_EQ(row.contains("with_copies_ms"), row["device"] != "cpu");
    EXPECT_LE(row["min_ms"], row["median_ms"]);
    EXPECT_LE(row["median_ms"], row["max_ms"]);
  }
  Words expected{"reference", "simd", "parallel"};
  for (int i = 0; i < cuda_device_count(); ++i) expected.push_back("cuda-simple");
  for (int i = 0; i < cuda_device_count(); ++i) expected.push_back("cuda");
  EXPECT_EQ(versions, expected);
}

TEST(StudyCommand, Results_GoToStdoutAndProgressToStderr) {
  const ProgramResult result =
      run_program({"study", "max", "--quick", "--cases", "5x5 u8", "--device", "cpu"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.out, "Element-wise maximum")) << result.out;
  EXPECT_TRUE(contains(result.out, "All versions agree exactly.")) << result.out;
  EXPECT_TRUE(contains(result.out, "parallel")) << result.out;
  EXPECT_FALSE(contains(result.out, "cuda-simple")) << result.out;
  EXPECT_FALSE(contains(result.out, "Running study")) << result.out;
  EXPECT_EQ(result.err, "Running study max: element-wise maximum of two matrices …\n");
}

TEST(StudyCommand, Html_IsOnePage) {
  const TempFolder folder;
  const ProgramResult result = run_program(
      {"study", "max", "--quick", "--cases", "9x4 i64,5x5 f64", "--cores", "1,2", "--html", "a report.html"},
      folder.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(folder.count(), 1u);
  const std::string page = text_of(folder / "a report.html");
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u) << page.substr(0, 80);
  EXPECT_TRUE(contains(page, "9x4 i64"));
  EXPECT_TRUE(contains(page, "<svg"));
  EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
  for (const char* outside : {"<script src", "<link", "@import", "src=\"http"})
    EXPECT_FALSE(contains(page, outside)) << outside;
}

TEST(StudyCommand, JsonToStdout_IsTheOnlyOutput) {
  const TempFolder folder;
  const ProgramResult result =
      run_program({"study", "max", "--quick", "--cases", "5x5 u8", "--json", "-"}, folder.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(folder.count(), 0u) << "no file named -";
  EXPECT_EQ(Json::parse(result.out)["study"], "max");
  const ProgramResult page =
      run_program({"study", "max", "--quick", "--cases", "5x5 u8", "--html", "-"}, folder.path());
  EXPECT_EQ(page.out.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_EQ(folder.count(), 0u);
}

TEST(StudyCommand, TimeLimit_LeavesOutTheRestAndSaysSo) {
  const ProgramResult result = run_program(
      {"study", "max", "--quick", "--cases", "5x5 u8,6x6 u8", "--device", "cpu", "--time-limit", "0.000001"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(
      contains(result.out, "Left out after the time limit of 1e-06 s: 5x5 u8, reference; 5x5 u8, parallel;"))
      << result.out;
}

TEST(StudyCommand, CoresAndVersions_SelectRows) {
  const TempFolder folder;
  const ProgramResult result = run_program({"study", "max", "--quick", "--cases", "8x8 i32", "--versions",
                                            "parallel", "--cores", "1,2", "--json", "F"},
                                           folder.path());
  EXPECT_EQ(result.status, 0) << result.err;
  const Json rows = Json::parse(text_of(folder / "F"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["threads"], 1);
  EXPECT_EQ(rows[1]["threads"], 2);
  EXPECT_FALSE(rows[0].contains("speedup"));
}

}  // namespace
}  // namespace tandem
