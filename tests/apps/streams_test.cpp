// Standard error that cannot be written to must not end a command.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/apps/program.h"
#include "tests/paths.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

// Runs the program with `redirection` appended to its command line; returns its exit status.
int run_in_shell(const std::string& command, const std::string& redirection, const TempFolder& folder) {
  const std::string line =
      "cd '" + folder.path().string() + "' && '" + program_file + "' " + command + " " + redirection;
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

TEST(Streams, OutputWithoutReader_SavesAndStops) {
  const TempFolder folder;
  write_small_digits(folder / "data");
  const std::vector<std::string> words{"train",    "data", "--layers", "784,8,10", "--device", "cpu",
                                       "--epochs", "9",    "--resume", "auto",     "--out"};
  const auto with_folder = [&](const std::string& name) {
    std::vector<std::string> all = words;
    all.push_back(name);
    return all;
  };
  ASSERT_EQ(run_program(with_folder("whole"), folder.path()).status, 0);
  const sighandler_t before = ::signal(SIGPIPE, SIG_DFL);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  const int err = open((folder / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(run_program(with_folder("run"), folder.path(), ends[1], err, true), 128 + SIGPIPE);
  close(ends[1]);
  close(err);
  ::signal(SIGPIPE, before);
  EXPECT_NE(text_of(folder / "err").find("Stopped and saved"), std::string::npos);
  ASSERT_EQ(run_program(with_folder("run"), folder.path()).status, 0);
  expect_same_weights(folder / "run", folder / "whole");
}

TEST(Streams, FileSizeLimit_IsAnErrorOfOneLine) {
  const TempFolder folder;
  write_small_digits(folder / "data");
  const std::string train = " train data --layers 784,8,10 --device cpu --epochs 1 --resume auto --out run";
  const std::string limited =
      "cd '" + folder.path().string() + "' && ulimit -f 16 && '" + program_file + "'" + train + " >out 2>err";
  const int status = std::system(limited.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_NE(text_of(folder / "err").find("File too large"), std::string::npos) << text_of(folder / "err");
  EXPECT_EQ(run_in_shell(train, ">out 2>err", folder), 0) << text_of(folder / "err");
}

}  // namespace
}  // namespace tandem
