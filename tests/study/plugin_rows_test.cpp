// Plugins and peers as rows of the studies: the examples of examples/plugins/, and plugins that fail.
#include "tandem/study/plugin/plugin_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tandem/core/write_file.h"
#include "tandem/files/scratch_folder.h"
#include "tandem/report/json.h"
#include "tandem/report/study_text.h"
#include "tandem/study/plugin/peers.h"
#include "tandem/study/studies.h"
#include "tests/paths.h"
#include "tests/study/plugin_trial.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

PluginFile example(const std::string& name) {
  return prepare_plugin(fs::path(source_folder) / "examples/plugins" / name);
}

StudyOptions options_for(std::vector<PluginFile> plugins, std::vector<std::string> cases) {
  return {.quick = true,
          .devices = {cpu_device},
          .cases = std::move(cases),
          .versions = {Version::reference, Version::parallel},
          .plugins = std::move(plugins),
          .program = program_file};
}

StudyRow row_of(const StudyReport& report, const std::string& version) {
  for (const StudyRow& row : report.rows)
    if (row.version == version) return row;
  throw Error("no row " + version);
}

void expect_measured(const StudyRow& row) {
  EXPECT_TRUE(row.agrees) << row.version << ' ' << row.case_name << ' ' << row.failure;
  EXPECT_GT(row.value("median_ms"), 0);
  EXPECT_GT(row.value("speedup"), 0);
  EXPECT_GT(row.value("share_of_peak"), 0);
  EXPECT_LE(row.value("share_of_peak"), 1);
}

TEST(PluginRows, ExampleInC_IsMeasured) {
  const StudyReport report = studies().get("max").run(options_for({example("max.c")}, {"65x33 i32"}));
  ASSERT_EQ(report.rows.size(), 3u);
  EXPECT_EQ(report.rows[2].version, "max");
  EXPECT_EQ(report.rows[2].device, "cpu");
  expect_measured(report.rows[2]);
  ASSERT_EQ(report.versions.size(), 6u);
  EXPECT_EQ(report.versions[5].name, "max");
  EXPECT_NE(report.versions[5].value.find(" -std=c17 "), std::string::npos) << report.versions[5].value;
}

TEST(PluginRows, ExampleInCpp_IsMeasuredInEveryStudy) {
  const PluginFile plugin = example("kernels.cpp");
  for (const auto& [study, cases] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"max", {"5x7 f32", "31x64 u8", "8x9 i64", "3x3 f64"}},
           {"xxt", {"33x17 f32", "16x40 f64"}},
           {"correlation", {"20x31 f32 3x3", "7x5 f64 4x6", "3x4 f32 9x9"}}}) {
    const StudyReport report = studies().get(study).run(options_for({plugin}, cases));
    EXPECT_EQ(report.rows.size(), 3 * cases.size());
    for (const StudyRow& row : report.rows)
      if (row.version == "kernels") expect_measured(row);
  }
}

TEST(PluginRows, ExampleInPython_IsMeasuredInEveryStudy) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  const PluginFile plugin = example("kernels.py");
  for (const auto& [study, name] : std::vector<std::pair<std::string, std::string>>{
           {"max", "31x20 i32"}, {"xxt", "20x31 f64"}, {"correlation", "9x21 f32 4x3"}})
    expect_measured(row_of(studies().get(study).run(options_for({plugin}, {name})), "kernels"));
}

TEST(PluginRows, ExampleInCuda_IsMeasuredInEveryStudy) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU here";
  const PluginFile plugin = example("kernels.cu");
  for (const auto& [study, name] : std::vector<std::pair<std::string, std::string>>{
           {"max", "1000x1000 i32"}, {"xxt", "129x65 f64"}, {"correlation", "200x301 f32 4x3"}}) {
    const StudyRow row = row_of(studies().get(study).run(options_for({plugin}, {name})), "kernels");
    expect_measured(row);
    EXPECT_EQ(row.device, "cuda:0");
    EXPECT_GE(row.value("with_copies_ms"), row.value("median_ms"));
  }
}

TEST(PluginRows, Threads_AreSwept) {
  StudyOptions options = options_for({example("kernels.cpp")}, {"64x64 i32"});
  options.threads = {1, 2};
  const StudyReport report = studies().get("max").run(options);
  int swept = 0;
  for (const StudyRow& row : report.rows)
    swept += row.version == "kernels" && row.threads.value_or(0) == swept + 1;
  EXPECT_EQ(swept, 2);
}

TEST(PluginRows, WrongResult_IsWrong) {
  const ScratchFolder folder;
  write_file("test", folder.path() / "wrong.c",
             "#include <tandem/plugin.h>\n"
             "int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }\n"
             "int tandem_max(const TandemCall* c) {\n"
             "  for (int i = 0; i < 12; ++i) ((int32_t*)c->outputs[0].data)[i] = 7;\n"
             "  return 0;\n}\n");
  const StudyReport report =
      studies().get("max").run(options_for({prepare_plugin(folder.path() / "wrong.c")}, {"3x4 i32"}));
  const StudyRow row = row_of(report, "wrong");
  EXPECT_FALSE(row.agrees);
  EXPECT_TRUE(row.failure.empty());
  EXPECT_TRUE(std::isnan(row.value("median_ms")));
  EXPECT_NE(study_text(report).find("WRONG: wrong on cpu disagrees with the reference on 3x4 i32"),
            std::string::npos);
}

// Its results are correct until the call that is measured.
TEST(PluginRows, ResultThatChanges_IsAFailure) {
  const ScratchFolder folder;
  write_file("test", folder.path() / "tired.c",
             "#include <tandem/plugin.h>\n"
             "static int calls;\n"
             "int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }\n"
             "int tandem_max(const TandemCall* c) {\n"
             "  const int32_t *a = c->inputs[0].data, *b = c->inputs[1].data;\n"
             "  int32_t* out = c->outputs[0].data;\n"
             "  if (++calls > 8) return 0;\n"
             "  for (int i = 0; i < 12; ++i) out[i] = a[i] > b[i] ? a[i] : b[i];\n"
             "  return 0;\n}\n");
  const StudyReport report =
      studies().get("max").run(options_for({prepare_plugin(folder.path() / "tired.c")}, {"3x4 i32"}));
  EXPECT_EQ(row_of(report, "tired").failure, "gave another, wrong result when it was repeated");
  EXPECT_FALSE(row_of(report, "tired").agrees);
}

TEST(PluginRows, Failure_IsInTextAndJson) {
  const ScratchFolder folder;
  write_file("test", folder.path() / "gone.c",
             "#include <stdlib.h>\n#include <tandem/plugin.h>\n"
             "int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }\n"
             "int tandem_max(const TandemCall* c) { (void)c; exit(4); }\n");
  const StudyReport report =
      studies().get("max").run(options_for({prepare_plugin(folder.path() / "gone.c")}, {"3x4 i32"}));
  EXPECT_EQ(row_of(report, "gone").failure, "ended with status 4");
  EXPECT_NE(study_text(report).find("FAILED: gone ended with status 4 (3x4 i32)."), std::string::npos);
  EXPECT_NE(to_json_text(report).find(R"("failure": "ended with status 4")"), std::string::npos);
}

TEST(Peers, Installed_AreMeasured) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  StudyOptions options = options_for({}, {"31x20 i32"});
  options.peers = {"python", "numpy"};
  const StudyReport report = studies().get("max").run(options);
  ASSERT_EQ(report.rows.size(), 4u);
  EXPECT_EQ(report.rows[2].version, "Python");
  EXPECT_EQ(report.rows[3].version, "NumPy");
  for (int i = 2; i < 4; ++i) expect_measured(report.rows[static_cast<std::size_t>(i)]);
  EXPECT_EQ(report.versions[6].value, "np.maximum, and X @ X.T, for which it calls BLAS.");
}

TEST(Peers, EveryInstalledPeer_Agrees) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  for (const auto& [study, name] :
       std::vector<std::pair<std::string, std::string>>{{"max", "31x20 i64"},
                                                        {"xxt", "20x31 f64"},
                                                        {"correlation", "9x21 f32 4x3"},
                                                        {"correlation", "3x4 f64 7x7"}}) {
    StudyOptions options = options_for({}, {name});
    options.peers = known_peers();
    options.devices = {};
    for (const StudyRow& row : studies().get(study).run(options).rows)
      EXPECT_TRUE(row.agrees) << study << ' ' << row.version << ' ' << row.failure;
  }
}

// SciPy has no maximum: no row, and no failure.
TEST(Peers, WithoutTheComputation_AreLeftOut) {
  if (!has_python() || !missing_peers({"scipy"}).empty()) GTEST_SKIP() << "there is no SciPy here";
  StudyOptions options = options_for({}, {"3x4 i32"});
  options.peers = {"scipy"};
  EXPECT_EQ(studies().get("max").run(options).rows.size(), 2u);
}

}  // namespace
}  // namespace tandem
