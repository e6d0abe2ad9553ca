#include "tandem/study/plugin/new_project.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tandem/files/scratch_folder.h"
#include "tandem/study/plugin/plugin_file.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// In a folder of its own, which is the working directory meanwhile.
class NewProject : public testing::Test {
 protected:
  NewProject() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~NewProject() override { fs::current_path(before_); }

 private:
  fs::path before_;
  ScratchFolder folder_;
};

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(NewProject, Kernel_Compiles) {
  const auto files = write_project(project_kinds().get("kernel"), "mine");
  EXPECT_EQ(files, (std::vector<fs::path>{"mine/mine.cpp", "mine/README.md", "mine/tandem/plugin.h"}));
  EXPECT_NE(text_of("mine/README.md").find("tandem study max --quick --with mine.cpp\n"), std::string::npos);
  EXPECT_NE(text_of("mine/mine.cpp").find("tandem study max --with mine.cpp\n"), std::string::npos);
  EXPECT_EQ(prepare_plugin("mine/mine.cpp").name, "mine");
}

TEST_F(NewProject, EveryKind_WritesItsSource) {
  int count = 0;
  for (const ProjectKind& kind : project_kinds().rows()) {
    const std::string name = "p" + std::to_string(++count);
    const auto files = write_project(kind, name);
    EXPECT_EQ(files.front(), fs::path(name) / (name + kind.extension));
    EXPECT_GT(fs::file_size(files.front()), 200u);
  }
}

TEST_F(NewProject, AugmentationAndModel_HaveTheNameOfTheProject) {
  write_project(project_kinds().get("augmentation"), "fog");
  EXPECT_NE(text_of("fog/fog.c").find("return \"fog\";"), std::string::npos);
  EXPECT_NE(text_of("fog/README.md").find("--with fog.c --augment \"fog 0.2 0.8\""), std::string::npos);
  EXPECT_EQ(text_of("fog/fog.c").find("vignette"), std::string::npos);
  write_project(project_kinds().get("model"), "net");
  EXPECT_NE(text_of("net/net.cpp").find(".name = \"net\""), std::string::npos);
  EXPECT_EQ(text_of("net/net.cpp").find("residual"), std::string::npos);
  EXPECT_EQ(prepare_plugin("fog/fog.c").name, "fog");
}

TEST_F(NewProject, ExistingFolder_IsKept) {
  fs::create_directory("mine");
  std::ofstream("mine/notes.txt") << "mine";
  EXPECT_EQ(error_text([] { write_project(project_kinds().get("kernel"), "mine"); }),
            "[new] expected a new or empty folder, but mine is not");
  EXPECT_EQ(text_of("mine/notes.txt"), "mine");
  EXPECT_FALSE(fs::exists("mine/mine.cpp"));
}

TEST_F(NewProject, Name_IsAPlainWord) {
  for (const std::string name : {"", "../x", "a b", "1st", "a/b", "-x"})
    EXPECT_EQ(error_text([&] { write_project(project_kinds().get("kernel"), name); }),
              "[new] expected a name of letters, digits and _, got '" + name + "'");
}

}  // namespace
}  // namespace tandem
