#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "tandem/core/write_file.h"
#include "tests/apps/program.h"
#include "tests/paths.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const std::string profile = R"(name = "small"
title = "Small"
[[part]]
name = "workers"
title = "Workers"
weight = 10
cases = ["requested", "cpus"]
)";

const std::string solution = R"(
#include <tandem/plugin.h>
int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }
int tandem_workers(const TandemCall* call) {
  int64_t count = 0;
  for (int i = 0; i < 3; ++i)
    if (count == 0) count = *(const int64_t*)call->inputs[i].data;
  *(int64_t*)call->outputs[0].data = count < 2 ? 2 : count;
  return 0;
}
)";

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  write_file("test", path, text);
}

TEST(GradeCommand, Submission_GetsPointsPageAndJson) {
  const TempFolder folder;
  write(folder / "p.toml", profile);
  write(folder / "ada/workers.c", solution);
  const ProgramResult result = run_program(
      {"grade", "ada", "--profile", "p.toml", "--html", "a.html", "--json", "a.json", "--seed", "424242"},
      folder.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("ada: 10 of 10 points (small)\n")) << result.out;
  EXPECT_EQ(text_of(folder / "a.html").find("424242"), std::string::npos) << "the seed is the teacher's";
  const auto json = nlohmann::json::parse(text_of(folder / "a.json"));
  EXPECT_EQ(json.at("points"), 10);
  EXPECT_EQ(json.at("seed"), 424242);
}

TEST(GradeCommand, Student_IsOneSubmissionWithFolders) {
  const TempFolder folder;
  write(folder / "p.toml", profile);
  write(folder / "ada/src/workers.c", solution);
  const ProgramResult result =
      run_program({"grade", "ada", "--student", "--profile", "p.toml", "--out", "results"}, folder.path());
  EXPECT_TRUE(result.out.starts_with("ada: 10 of 10 points")) << result.out << result.err;
  EXPECT_TRUE(fs::exists(folder / "results/ada.html"));
}

TEST(GradeCommand, ExamplePlugins_AreCorrect) {
  const TempFolder folder;
  std::string parts = "name = \"all\"\ntitle = \"All\"\n";
  for (const auto& [name, cases] :
       {std::pair("max", "\"33x17 i32\""), std::pair("xxt", "\"20x30 f32\", \"7x9 f64\""),
        std::pair("correlation", "\"20x30 f32 4x3\", \"3x4 f64 7x9\"")})
    parts += std::string("[[part]]\nname = \"") + name + "\"\ntitle = \"Part\"\nweight = 10\ncases = [" +
             cases + "]\n";
  write(folder / "p.toml", parts);
  const fs::path examples = fs::path(source_folder) / "examples/plugins";
  for (const char* file : {"kernels.cpp", "kernels.py"}) {
    const ProgramResult result =
        run_program({"grade", (examples / file).string(), "-p", "p.toml"}, folder.path());
    if ((result.out + result.err).find("Python is not installed") != std::string::npos) continue;
    EXPECT_TRUE(result.out.starts_with("kernels: 30 of 30 points")) << file << "\n"
                                                                    << result.out << result.err;
  }
}

TEST(GradeCommand, WrongUse_IsOneLine) {
  const TempFolder folder;
  fs::create_directory(folder / "empty");
  write(folder / "bad.toml", "name = 3\n");
  write(folder / "ada/workers.c", solution);
  const auto error = [&](std::vector<std::string> words, int status) {
    words.insert(words.begin(), "grade");
    const ProgramResult result = run_program(words, folder.path());
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_NE(error({}, 2).find("SUBMISSION"), std::string::npos);
  EXPECT_NE(error({"nobody"}, 1).find("nobody: no such file or folder"), std::string::npos);
  EXPECT_NE(error({"empty"}, 1).find("empty: is empty: expected a source file"), std::string::npos);
  EXPECT_NE(error({"ada", "--profile", "perceptron"}, 1).find("did you mean 'perceptron-and-kernels'?"),
            std::string::npos);
  EXPECT_NE(error({"ada", "--profile", "bad.toml"}, 1).find("bad.toml:1: name: expected a name, got 3"),
            std::string::npos);
  EXPECT_NE(error({"ada", "--html", "missing/a.html"}, 1).find("missing/a.html"), std::string::npos);
  EXPECT_NE(error({"--print-profile", "other"}, 2).find("expected perceptron-and-kernels"),
            std::string::npos);
}

TEST(GradeCommand, PrintProfile_IsAProfile) {
  const TempFolder folder;
  const ProgramResult result =
      run_program({"grade", "--print-profile", "augmentation-and-correlation"}, folder.path());
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.out.find("name = \"augmentation-and-correlation\""), std::string::npos);
}

// Starts the program, waits for a line on standard error, and kills it.
void kill_after_first_line(const std::vector<std::string>& words, const fs::path& folder) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> arguments{const_cast<char*>("tandem")};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (chdir(folder.c_str()) == 0 && dup2(fds[1], 2) >= 0) execv(program_file, arguments.data());
    _exit(99);
  }
  close(fds[1]);
  char c = 0;
  while (read(fds[0], &c, 1) == 1 && c != '\n') {
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(fds[0]);
}

TEST(GradeCommand, Class_ResumesAfterAKill) {
  const TempFolder folder;
  write(folder / "p.toml", profile);
  for (const char* name : {"ada", "bob", "eve"})
    write(folder / ("class/" + std::string(name) + "/workers.c"), solution);
  write(folder / "class/fay.zip", "no archive");
  const std::vector<std::string> words{"grade", "class", "--profile", "p.toml", "--html", "all.html"};
  kill_after_first_line(words, folder.path());
  EXPECT_TRUE(fs::exists(folder / "all/ada.json"));
  EXPECT_FALSE(fs::exists(folder / "all.html"));
  const ProgramResult second = run_program(words, folder.path());
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_NE(second.err.find("1 of 4: ada: 10 of 10 points, graded before"), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("4 of 4: fay: 0 of 10 points"), std::string::npos) << second.err;
  EXPECT_NE(text_of(folder / "all/fay.html").find("not a zip archive"), std::string::npos);
  EXPECT_NE(text_of(folder / "all.html").find("href=\"all/eve.html\""), std::string::npos);
  // A changed submission is graded again, the others are not.
  write(folder / "class/bob/workers.c", "int x = ;");
  const ProgramResult third = run_program(words, folder.path());
  EXPECT_NE(third.err.find("1 of 4: ada: 10 of 10 points, graded before"), std::string::npos) << third.err;
  EXPECT_NE(third.err.find("2 of 4: bob: 0 of 10 points ("), std::string::npos) << third.err;
}

TEST(GradeCommand, PageWithTheNameOfTheFolder_KeepsResultsApart) {
  const TempFolder folder;
  write(folder / "p.toml", profile);
  write(folder / "class/ada/workers.c", solution);
  EXPECT_EQ(
      run_program({"grade", "class", "--profile", "p.toml", "--html", "class.html"}, folder.path()).status,
      0);
  EXPECT_TRUE(fs::exists(folder / "class-grades/ada.json"));
  EXPECT_FALSE(fs::exists(folder / "class/ada.json"));
}

TEST(GradeCommand, Submit_WritesAJobArray) {
  const TempFolder folder;
  write(folder / "p.toml", profile);
  write(folder / "class/ada/workers.c", solution);
  write(folder / "class/it's.zip", "x");
  const ProgramResult result =
      run_program({"grade", "class", "--profile", "p.toml", "--html", "all.html", "--submit"}, folder.path());
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string script = text_of(folder / "all/grade.sbatch");
  EXPECT_NE(script.find("'grade' '--student' '--profile' '"), std::string::npos) << script;
  EXPECT_NE(script.find("--array=0-1 "), std::string::npos) << script;
  EXPECT_NE(script.find("it'\\''s.zip'\n"), std::string::npos) << script;
  EXPECT_NE(script.find("\"${submissions[$SLURM_ARRAY_TASK_ID]}\""), std::string::npos) << script;
  EXPECT_NE(result.out.find("Wrote all/grade.sbatch: 2 submissions\n"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace tandem
