#include "tandem/study/plugin/plugin_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/core/error_text.h"
#include "tests/paths.h"
#include "tests/study/plugin_trial.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(PreparePlugin, WrongFiles_AreRefused) {
  EXPECT_EQ(error_text([] { prepare_plugin("/no/such/mine.cpp"); }),
            "[plugin] expected a file, got '/no/such/mine.cpp'");
  const ScratchFolder folder;
  write_file("test", folder.path() / "mine.rs", "");
  const std::string path = (folder.path() / "mine.rs").string();
  EXPECT_EQ(error_text([&] { prepare_plugin(path); }),
            "[plugin] expected a file of type .so, .c, .cpp, .cu or .py, got '" + path + "'");
}

TEST(PreparePlugin, CompilerError_IsOneLine) {
  const std::string text = error_text([] { compile("int x = y;\n", "broken.c"); });
  EXPECT_NE(text.find("broken.c cannot be compiled: "), std::string::npos) << text;
  EXPECT_NE(text.find("error"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(PreparePlugin, MissingCompiler_IsNamed) {
  ::setenv("CC", "no-such-compiler", 1);
  const std::string text = error_text([] { compile("int x;\n", "fine.c"); });
  ::unsetenv("CC");
  EXPECT_NE(text.find("fine.c cannot be compiled: no-such-compiler is not installed"), std::string::npos)
      << text;
}

TEST(PreparePlugin, SandboxedCompiler_ReadsNoOtherFiles) {
  const ScratchFolder folder, secret;
  write_file("test", secret.path() / "secret.h", "int secret;\n");
  write_file("test", folder.path() / "mine.c",
             "#include \"" + (secret.path() / "secret.h").string() + "\"\n");
  write_file("test", folder.path() / "honest.c", "int x;\n");
  for (const auto& each : {folder.path(), secret.path()}) fs::permissions(each, fs::perms(0755));
  const CompileOptions sandboxed{.sandboxed = true, .program = program_file};
  EXPECT_NO_THROW(prepare_plugin(folder.path() / "honest.c", sandboxed));
  if (!missing_protections({.allow_files = false}).empty() && ::geteuid() == 0) GTEST_SKIP() << "no Landlock";
  EXPECT_NE(
      error_text([&] { prepare_plugin(folder.path() / "mine.c", sandboxed); }).find("Permission denied"),
      std::string::npos);
}

}  // namespace
}  // namespace tandem
