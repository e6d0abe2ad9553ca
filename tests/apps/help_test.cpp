// Help texts, and what is generated from the same table of flags: man page, completion, reference pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tandem/nn/model_registry.h"
#include "tandem/text/utf8.h"
#include "tandem/train/options.h"
#include "tests/apps/program.h"
#include "tests/paths.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string output(const Words& words) {
  const ProgramResult result = run_program(words);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

// As the program lists them.
const Words& commands() {
  static const Words names = [] {
    Words found;
    const std::string text = output({"generate", "markdown"});
    const std::regex row("`tandem ([a-z-]+)`");
    for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end; ++match)
      found.push_back((*match)[1]);
    EXPECT_GE(found.size(), 12u) << text;
    return found;
  }();
  return names;
}

int checked_lines(const std::string& text) {
  int lines = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line); ++lines) EXPECT_LE(display_width(line), 80) << line;
  return lines;
}

TEST(Help, EveryCommand_FitsOneScreenWithExample) {
  std::vector<Words> screens{{"--help"}, {"-h"}};
  for (const std::string& command : commands()) screens.push_back({command, "--help"});
  for (const Words& words : screens) {
    const std::string text = output(words);
    EXPECT_TRUE(contains(text, "Example")) << text;
    EXPECT_TRUE(contains(text, "Usage: tandem")) << text;
    EXPECT_LE(checked_lines(text), 40) << text;
  }
}

TEST(Help, Program_ListsTheCommandsButNoHiddenOne) {
  const std::string text = output({"--help"});
  for (const std::string& command : commands()) EXPECT_TRUE(contains(text, "\n  " + command + " ")) << text;
  EXPECT_FALSE(contains(text, "generate"));
}

TEST(Help, HelpAsACommand_IsTheFlag) {
  EXPECT_EQ(output({"help"}), output({"--help"}));
  EXPECT_EQ(output({"help", "split"}), output({"split", "--help"}));
}

TEST(Help, HelpAll_ShowsEveryTrainingFlagWithHelpAndDefault) {
  const std::string brief = output({"train", "--help"});
  const std::string all = output({"train", "--help-all"});
  checked_lines(all);
  for (const TrainField& field : train_fields()) {
    std::string flag = std::string("--") + field.key;
    std::ranges::replace(flag, '_', '-');
    const std::string first_word = std::string(field.help).substr(0, std::string(field.help).find(' '));
    EXPECT_TRUE(flag == "--data" || contains(all, flag)) << flag;
    EXPECT_TRUE(contains(all, first_word)) << field.help;
  }
  EXPECT_TRUE(contains(all, "--warmup-steps N")) << all;
  EXPECT_FALSE(contains(brief, "--warmup-steps")) << brief;
  EXPECT_TRUE(contains(brief, "--help-all")) << brief;
  EXPECT_TRUE(contains(all, "(default: 60)")) << all;          // --save-every
  EXPECT_TRUE(contains(all, "(default: 784,200,10)")) << all;  // --layers
  EXPECT_TRUE(contains(all, "-b, --batch-size N")) << all;
  EXPECT_TRUE(contains(all, "--early-stopping, --patience N")) << all;
}

TEST(Generate, Man_IsAPageWithEveryCommandAndFlag) {
  const std::string page = output({"generate", "man"});
  EXPECT_EQ(page.rfind(".TH TANDEM 1", 0), 0u) << page.substr(0, 80);
  for (const std::string& command : commands())
    EXPECT_TRUE(contains(page, ".SH \"TANDEM " + std::regex_replace(command, std::regex("-"), "\\-")))
        << command;
  EXPECT_TRUE(contains(page, "\\fB\\-b\\fR, \\fB\\-\\-batch\\-size\\fR \\fIN\\fR")) << page;
  EXPECT_EQ(output({"generate", "man", "train"}).rfind(".TH TANDEM\\-TRAIN 1", 0), 0u);
}

TEST(Generate, Bash_CompletesCommandsFlagsAndValues) {
  const TempFolder folder;
  put_bytes(folder / "tandem.bash", output({"generate", "bash"}));
  const auto complete = [&](const std::string& words) {
    const std::string script = "source '" + (folder / "tandem.bash").string() + "'; COMP_WORDS=(" + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tandem; echo \"${COMPREPLY[*]}\"";
    put_bytes(folder / "script", script);
    std::string text;
    FILE* const pipe = popen(("bash '" + (folder / "script").string() + "' 2>&1").c_str(), "r");
    if (pipe == nullptr) return std::string("popen failed");
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
    pclose(pipe);
    return text;
  };
  EXPECT_EQ(complete("tandem tr"), "train\n");
  EXPECT_EQ(complete("tandem train --batch-s"), "--batch-size\n");
  EXPECT_EQ(complete("tandem train --arch resnet"), "resnet18 resnet34 resnet50\n");
  EXPECT_EQ(complete("tandem filter --filter ri"), "ring\n");
  EXPECT_EQ(complete("tandem study corr"), "correlation\n");
  EXPECT_EQ(complete("tandem fetch resnet5"), "resnet50\n");
}

TEST(Generate, ZshAndFish_NameEveryCommandAndFlag) {
  const std::string zsh = output({"generate", "zsh"}), fish = output({"generate", "fish"});
  EXPECT_EQ(zsh.rfind("#compdef tandem\n", 0), 0u);
  for (const std::string& command : commands()) {
    EXPECT_TRUE(contains(zsh, "  " + command + ")\n    _arguments")) << command;
    EXPECT_TRUE(contains(fish, "__fish_use_subcommand -a " + command + " -d ")) << command;
  }
  EXPECT_TRUE(contains(zsh, "'--layers[")) << zsh;
  EXPECT_TRUE(contains(fish, " -l layers -r -d ")) << fish;
}

TEST(Generate, UnknownWords_AreErrors) {
  EXPECT_EQ(run_program({"generate", "word"}).status, 2);
  EXPECT_EQ(run_program({"generate", "man", "bake"}).status, 1);
}

// scripts/update-reference writes these pages.
TEST(Generate, ReferencePages_AreUpToDate) {
  const fs::path folder = fs::path(source_folder) / "docs/reference";
  EXPECT_EQ(text_of(folder / "README.md"), output({"generate", "markdown"}));
  std::set<std::string> pages{"README.md"};
  for (const std::string& command : commands()) {
    EXPECT_EQ(text_of(folder / (command + ".md")), output({"generate", "markdown", command}))
        << "run scripts/update-reference";
    pages.insert(command + ".md");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    EXPECT_TRUE(pages.contains(entry.path().filename().string())) << entry.path();
}

}  // namespace
}  // namespace tandem
