// Standard error that cannot be written to must not end a command.
#include <gtest/gtest.h>

#include "tests/apps/program.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

// Runs the program with `redirection` appended to its command line; returns its exit status.
int run_in_shell(const std::string& command, const std::string& redirection, const TempFolder& folder) {
  const std::string line =
      "cd '" + folder.path().string() + "' && '" + TANDEM_PROGRAM + "' " + command + " " + redirection;
  const int status = std::system(line.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Streams, ErrorStreamFullOrClosed_CommandsGoOn) {
  const TempFolder folder;
  write_small_digits(folder / "data");
  const std::string train = "train data --layers 784,8,10 --device cpu --epochs 1 --augment digits --out ";
  int number = 0;
  for (const std::string redirection : {">out 2>/dev/full", ">out 2>&-", "2>&1 >out | true"}) {
    const std::string run = "run" + std::to_string(++number);
    EXPECT_EQ(run_in_shell(train + run, redirection, folder), 0) << redirection;
    EXPECT_TRUE(std::filesystem::exists(folder / run / "report.html")) << redirection;
    EXPECT_NE(text_of(folder / "out").find("accuracy"), std::string::npos) << redirection;
  }
  for (const std::string redirection : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(run_in_shell("train none", redirection, folder), 1);
    EXPECT_EQ(run_in_shell("nonsense", redirection, folder), 2);
    EXPECT_EQ(run_in_shell("predict none none", redirection, folder), 1);
  }
  // What is written with closed streams goes nowhere, not into a file of the run.
  EXPECT_EQ(run_in_shell("inspect run2/best.safetensors", ">&- 2>&-", folder), 1);
}

}  // namespace
}  // namespace tandem
