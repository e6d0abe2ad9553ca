// --with of train, augment, predict and eval: operations and models of the user, through the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tandem/study/plugin/header_folders.h"
#include "tandem/study/plugin/plugin_file.h"
#include "tests/apps/program.h"
#include "tests/paths.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

std::string example(const std::string& path) {
  return std::string(source_folder) + "/examples/plugins/" + path;
}

class WithPlugin : public testing::Test {
 protected:
  WithPlugin() { write_small_digits(folder_ / "data"); }

  ProgramResult run(const Words& words) { return run_program(words, folder_.path()); }
  ProgramResult succeed(const Words& words) {
    ProgramResult result = run(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  // The last line that a failing command prints.
  std::string failure(const Words& words, int status = 1) {
    const ProgramResult result = run(words);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    const std::string text = result.err.substr(0, result.err.size() - 1);
    return text.substr(text.rfind('\n') + 1);
  }
  Words train(const Words& more) const {
    Words words{"train", "data", "--batch-size", "20", "--device", "cpu"};
    if (std::ranges::find(more, "--epochs") == more.end()) words.insert(words.end(), {"--epochs", "2"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string written(const std::string& name, const std::string& code) const {
    const auto file = folder_ / name;
    std::ofstream(file) << "#include <tandem/plugin.h>\n" << code;
    return file.string();
  }

  TempFolder folder_;
};

const std::string vignette = example("own_augmentation/vignette.c");
const std::string recipe = "vignette 0.2 0.8, rotate -10 10";

TEST_F(WithPlugin, Augmentation_GivesTheSameBitsForAllWorkers) {
  const ProgramResult first = succeed(train(
      {"--layers", "784,16,10", "--with", vignette, "--augment", recipe, "--workers", "0", "--out", "run"}));
  EXPECT_NE(first.err.find("Augmentation: vignette 0.2 0.8, rotate -10 10; "), std::string::npos)
      << first.err;
  EXPECT_NE(first.err.find("vignette.so\n"), std::string::npos) << first.err;  // the command that compiled it
  for (const Words& workers : {Words{"1", "thread"}, {"2", "thread"}, {"1", "process"}, {"2", "process"}}) {
    const std::string out = workers[1] + workers[0];
    succeed(train({"--layers", "784,16,10", "--with", vignette, "--augment", recipe, "--workers", workers[0],
                   "--worker-kind", workers[1], "--out", out}));
    expect_same_weights(folder_ / "run", folder_ / out);
  }
  // It is not the run without the operation.
  succeed(train({"--layers", "784,16,10", "--augment", "rotate -10 10", "--workers", "0", "--out", "other"}));
  EXPECT_NE(weights_of(read_safetensors(folder_ / "run/best.safetensors")),
            weights_of(read_safetensors(folder_ / "other/best.safetensors")));
}

TEST_F(WithPlugin, Resume_NeedsThePlugin) {
  const Words words{"--layers", "784,16,10", "--augment", recipe, "--out", "run", "--epochs", "1"};
  Words with = words;
  with.insert(with.end(), {"--with", vignette});
  succeed(train(with));
  const std::string line = failure({"train", "--resume", "run", "--epochs", "2"});
  EXPECT_NE(line.find("got 'vignette 0.2 0.8'"), std::string::npos) << line;
  EXPECT_NE(line.find("; it was used with the plugin " + vignette + " (--with FILE loads it)"),
            std::string::npos)
      << line;
  succeed({"train", "--resume", "run", "--epochs", "2", "--with", vignette});
  succeed(train({"--layers", "784,16,10", "--augment", recipe, "--out", "whole", "--with", vignette}));
  expect_same_weights(folder_ / "run", folder_ / "whole");
}

TEST_F(WithPlugin, OtherCommands_UseTheOperation) {
  EXPECT_NE(succeed({"augment", "data", "--with", vignette, "--augment", "vignette 1 1", "-o", "sheet.png"})
                .out.find("Wrote sheet.png"),
            std::string::npos);
  const std::string out =
      succeed({"verify-determinism", "data", "--with", vignette, "--augment", recipe, "--workers", "2"}).out;
  EXPECT_NE(out.find("Every batch is the same in every configuration."), std::string::npos) << out;
  EXPECT_NE(failure({"augment", "data", "--augment", "vignette 1 1", "-o", "sheet.png"}, 2)
                .find("got 'vignette 1 1'"),
            std::string::npos);
}

TEST_F(WithPlugin, Studies_UseTheOperation) {
  const std::string out =
      succeed({"study", "workers", "--quick", "--data", "data", "--workers", "1,2", "--device", "cpu",
               "--with", vignette, "--augment", recipe, "--layers", "784,16,10"})
          .out;
  EXPECT_NE(out.find("All versions agree."), std::string::npos) << out;
  EXPECT_NE(out.find("vignette 0.2 0.8"), std::string::npos) << out;
  EXPECT_NE(failure({"study", "workers", "--augment", "vignette 1 1"}, 2).find("got 'vignette 1 1'"),
            std::string::npos);
}

TEST_F(WithPlugin, BadPlugins_AreOneLine) {
  const auto line = [&](const std::string& file) { return failure(train({"--with", file})); };
  EXPECT_EQ(line("missing.c"), "tandem: error: [plugin] expected a file, got 'missing.c'");
  EXPECT_NE(line(written("old.c", "int tandem_plugin_version(void) { return 0; }"))
                .find("old.so was made for version 0 of the plugin interface, this is version 1"),
            std::string::npos);
  const std::string version = "int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }\n";
  EXPECT_NE(line(written("empty.c", version))
                .find("empty.so has neither an operation (tandem_augment) nor a model (tandem_register)"),
            std::string::npos);
  EXPECT_NE(
      line(written("taken.c",
                   version + "const char* tandem_augment_name(void) { return \"shift\"; }\n"
                             "int tandem_augment_arguments(void) { return 0; }\n"
                             "int tandem_augment(const TandemAugmentCall* call) { return call->height; }\n"))
          .find("[augment] expected a new name for an operation, got 'shift', which is taken"),
      std::string::npos);
  EXPECT_NE(
      line(written("other.c", version +
                                  "const char* tandem_plugin_headers(void) { return \"0.0.1 12345678\"; }\n"
                                  "void tandem_register(void) {}\n"))
          .find("other.so was compiled with the headers of another Tandem (0.0.1 12345678), this one has "),
      std::string::npos);
  EXPECT_NE(line(written("plain.c", version + "void tandem_register(void) {}\n"))
                .find("plain.so has no function tandem_plugin_headers"),
            std::string::npos);
  EXPECT_NE(line(written("wrong.c", "int x = ;")).find("wrong.c cannot be compiled: "), std::string::npos);
  EXPECT_NE(line(written("script.py", "")).find("expected a file of type .so, .c or .cpp, got "),
            std::string::npos);
  ASSERT_EQ(setenv("CC", "no-such-compiler", 1), 0);
  EXPECT_NE(line(vignette).find("vignette.c cannot be compiled: no-such-compiler is not installed"),
            std::string::npos)
      << line(vignette);
  unsetenv("CC");
}

TEST_F(WithPlugin, Model_TrainsFromSource) {
  const ProgramResult result = succeed(train(
      {"--with", example("own_model/residual.cpp"), "--model", "residual", "--epochs", "8", "--out", "run"}));
  double accuracy = 0;
  const std::size_t at = result.out.find("Test accuracy: ");
  ASSERT_NE(at, std::string::npos) << result.out;
  ASSERT_EQ(std::sscanf(result.out.c_str() + at, "Test accuracy: %lf", &accuracy), 1);
  EXPECT_GT(accuracy, 60) << result.out;  // ten classes, 270 images
}

TEST_F(WithPlugin, Model_IsNeededToUseTheRun) {
  const PluginFile plugin =
      prepare_plugin(example("own_model/residual.cpp"), {.include_folders = header_folders()});
  const std::string library = plugin.library.string();
  succeed(train({"--with", library, "--model", "residual", "--out", "whole"}));
  succeed(train({"--with", library, "--model", "residual", "--out", "run", "--epochs", "1"}));
  const std::string resumed = failure({"train", "--resume", "run", "--epochs", "2"});
  EXPECT_NE(resumed.find("got 'residual'"), std::string::npos) << resumed;
  EXPECT_NE(resumed.find("; it was used with the plugin " + library + " (--with FILE loads it)"),
            std::string::npos)
      << resumed;
  succeed({"train", "--resume", "run", "--epochs", "2", "--with", library});
  expect_same_weights(folder_ / "run", folder_ / "whole");
  EXPECT_NE(succeed({"eval", "run", "data", "--with", library}).out.find("ccuracy"), std::string::npos);
  const std::string images = "data/t10k-images-idx3-ubyte";
  EXPECT_EQ(succeed({"predict", "run", images, "--with", library}).out.rfind("path,class,probability,", 0),
            0U);
  for (const Words& words : {Words{"eval", "run"}, {"predict", "run", images}}) {
    const std::string line = failure(words);
    EXPECT_NE(line.find("'residual' is not a model this program knows"), std::string::npos) << line;
    EXPECT_NE(line.find("it was made by: tandem train data "), std::string::npos) << line;
    EXPECT_NE(line.find("(--with FILE loads a plugin with a model of your own)"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace tandem
