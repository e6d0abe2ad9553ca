// tandem watch on runs of the program, as lines and on a terminal.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/apps/running_program.h"
#include "tests/apps/terminal_program.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr const char* log_header =
    "epoch,train_loss,train_accuracy,val_loss,val_accuracy,learning_rate,seconds,samples_per_second,"
    "waited_seconds\n";
const std::string enter_screen = "\x1b[?1049h", leave_screen = "\x1b[?1049l";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++number;
  return number;
}

class WatchCommand : public testing::Test {
 protected:
  void train(const std::string& name) {
    const ProgramResult result =
        run_program({"train", "digits", "--limit", "200", "--epochs", "3", "--device", "cpu", "--out", name},
                    folder_.path());
    ASSERT_EQ(result.status, 0) << result.err;
  }
  // A run that goes on, as far as the folder tells: this process has locked it.
  void start(const std::string& name) {
    fs::create_directories(folder_ / name);
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    put(name + "/.lock", std::to_string(getpid()) + " " + host + "\n");
    put(name + "/config.toml", "data = \"digits\"\nmodel = \"mlp\"\nepochs = 5\n");
    status(name, "running");
    put(name + "/log.csv", log_header);
    epoch(name, 1);
  }
  void epoch(const std::string& name, int number) {
    std::ofstream(folder_ / (name + "/log.csv"), std::ios::app)
        << number << ",1.5,0.5,1.25,0." << 5 + number << ",0.5,1.5,1500,0.1\n";
  }
  void status(const std::string& name, const std::string& state) {
    put(name + "/new", "{\"state\": \"" + state + "\", \"epochs\": 5, \"steps_per_epoch\": 10}");
    fs::rename(folder_ / (name + "/new"), folder_ / (name + "/status.json"));
  }
  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  ProgramResult watch(Words words) {
    words.insert(words.begin(), "watch");
    return run_program(words, folder_.path());
  }
  void expect_error(const Words& words, const std::string& line, int status = 1) {
    const ProgramResult result = watch(words);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "tandem: error: " + line + "\n");
  }

  TempFolder folder_;
};

TEST_F(WatchCommand, FinishedRun_AsLines) {
  train("a");
  const ProgramResult result = watch({"a"});  // not on a terminal
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(count(result.out, "epoch 1/3: train loss "), 1U) << result.out;
  EXPECT_EQ(count(result.out, "epoch 3/3: train loss "), 1U) << result.out;
  EXPECT_TRUE(contains(result.out, "Warning: only 22 validation images")) << result.out;
  EXPECT_TRUE(contains(result.out, "\nfinished: best validation accuracy ")) << result.out;
  EXPECT_EQ(watch({"a", "--plain"}).out, result.out);
}

TEST_F(WatchCommand, SeveralRuns_AsLines) {
  train("runs/a");
  train("runs/b");
  const ProgramResult both = watch({"runs/a", "runs/b"});
  EXPECT_TRUE(contains(both.out, "runs/a: epoch 3/3: ") && contains(both.out, "runs/b: finished: "))
      << both.out;
  const ProgramResult newest = watch({});
  EXPECT_EQ(count(newest.out, "finished: "), 1U) << newest.out;
}

TEST_F(WatchCommand, RunThatGoesOn_LinesComeUntilItEnds) {
  start("a");
  RunningProgram program({"watch", "a", "--plain"}, folder_.path());
  const auto wait_for = [&](const std::string& text) {
    while (!contains(program.out(), text)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  wait_for(
      "epoch 1/5: train loss 1.5000, validation loss 1.2500, validation accuracy 60.00 %, 1,500 images/s\n");
  epoch("a", 2);
  wait_for("epoch 2/5: ");
  status("a", "stopped");
  EXPECT_EQ(program.wait(), 1);
  EXPECT_TRUE(contains(program.out(), "\nstopped: best validation accuracy 70.00 % in epoch 2\n"))
      << program.out();
}

TEST_F(WatchCommand, FolderThatDisappears_EndsTheLines) {
  start("a");
  RunningProgram program({"watch", "a", "--plain"}, folder_.path());
  while (!contains(program.out(), "epoch 1/5")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  fs::remove_all(folder_ / "a");
  EXPECT_EQ(program.wait(), 1);
  EXPECT_TRUE(contains(program.out(), "gone: ")) << program.out();
}

TEST_F(WatchCommand, FailedRun_GivesStatus1) {
  start("runs/a");
  start("runs/b");
  status("runs/a", "failed");
  status("runs/b", "finished");
  const ProgramResult failed = watch({"--plain", "runs/a"});
  EXPECT_EQ(failed.status, 1) << failed.err;
  EXPECT_EQ(failed.err, "");
  EXPECT_TRUE(contains(failed.out, "\nfailed: best validation accuracy 60.00 % in epoch 1")) << failed.out;
  EXPECT_EQ(watch({"--plain", "runs/b", "runs/a"}).status, 1);
  EXPECT_EQ(watch({"--plain", "runs/b"}).status, 0);
  EXPECT_EQ(watch({"--once", "runs/a"}).status, 0);
}

TEST_F(WatchCommand, Once_PrintsOneScreenAndWritesNothing) {
  train("runs/a");
  std::vector<std::string> before, after;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) before.push_back(entry.path());
  const ProgramResult result = watch({"--once"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(count(result.out, "\n"), 24U) << result.out;
  EXPECT_FALSE(contains(result.out, "\x1b")) << result.out;
  EXPECT_TRUE(contains(result.out, "runs/a  finished\n")) << result.out;
  EXPECT_TRUE(contains(result.out, "Epoch 3/3")) << result.out;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) after.push_back(entry.path());
  EXPECT_EQ(before, after);
}

TEST_F(WatchCommand, BadInput_IsOneLine) {
  expect_error({}, "[watch] runs: no such folder");
  expect_error({"none"}, "[watch] none: no such folder");
  fs::create_directory(folder_ / "empty");
  expect_error({"empty"}, "[watch] empty: expected the folder of a run or of runs, it has no log.csv");
  put("file", "x");
  expect_error({"file", "--once"}, "[watch] file: expected the folder of a run, got a file");
  expect_error({"--plain", "--once"}, "--plain excludes --once (see tandem watch --help)", 2);
}

TEST_F(WatchCommand, BadInputOfThePage_IsOneLine) {
  expect_error({"none", "--http", "0"}, "[watch] none: expected a folder of runs");
  EXPECT_EQ(watch({"--http", "0.0.0.0:0"}).status, 1);
  EXPECT_TRUE(contains(watch({"--http", "0.0.0.0:0"}).err,
                       "tandem: error: [serve] expected --token-file FILE to listen on 0.0.0.0:0"));
  EXPECT_EQ(watch({"--http", "nowhere"}).status, 2);
  EXPECT_EQ(watch({"--http", "--once"}).status, 2);
  EXPECT_EQ(watch({"--token-file", "token"}).status, 2);
}

TEST_F(WatchCommand, LogWithAnything_IsShown) {
  start("a");
  put("a/log.csv", std::string(log_header) + "1,nan,inf,,-nan,0.5,1.5,1500,0.1\n2,0.5\n\x1b[2J\n" +
                       std::string(300'000, 'x') + "\n3,1,1,1,1,1,1,1,1\n4,1,");
  put("a/config.toml", "data = \"\\u001b[31mred\"\n");
  status("a", "finished");
  const ProgramResult result = watch({"a", "--once"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_FALSE(contains(result.out, "\x1b")) << result.out;
  EXPECT_TRUE(contains(result.out, "2 rows of the logs cannot be read")) << result.out;
  EXPECT_TRUE(contains(result.out, "Epoch 3/5")) << result.out;
}

TEST_F(WatchCommand, Terminal_KeysAndGrowthAndQuit) {
  start("runs/a");
  start("runs/b");
  TerminalProgram program({"watch"}, folder_.path(), 80, 24);
  program.wait_for(enter_screen);
  program.wait_for("Epoch 1/5");
  program.wait_for("q quit");
  epoch("runs/a", 2);
  epoch("runs/b", 2);
  program.wait_for("Epoch 2/5");
  program.press("?");
  program.wait_for("zoom to the last part of the curves");
  program.press("?\t");
  program.wait_for("▸ ");
  program.press("+");
  program.wait_for("zoom 2x");
  program.press("l");
  program.wait_for("linear axis");
  start("runs/c");  // is found
  program.wait_for("runs/c");
  program.press("\x1b[5~q");
  EXPECT_EQ(program.wait(), 0);
  EXPECT_TRUE(program.output().ends_with(leave_screen)) << program.output();
  EXPECT_TRUE(program.is_restored());
}

TEST_F(WatchCommand, Terminal_AnySizeIsDrawn) {
  start("a");
  TerminalProgram program({"watch", "a"}, folder_.path(), 1, 1);
  program.wait_for("…");
  program.resize(200, 60);
  program.wait_for("Accuracy");
  program.resize(3, 2);
  program.wait_for("\x1b[2J");
  program.resize(80, 24);
  program.wait_for("Accuracy");
  program.press("q");
  EXPECT_EQ(program.wait(), 0);
  EXPECT_TRUE(program.is_restored());
}

TEST_F(WatchCommand, Terminal_SignalsRestoreIt) {
  start("a");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    TerminalProgram program({"watch", "a"}, folder_.path(), 80, 24);
    program.wait_for("q quit");
    EXPECT_FALSE(program.is_restored());
    kill(program.pid(), signal);
    EXPECT_EQ(program.wait(), 128 + signal);
    EXPECT_TRUE(contains(program.output(), leave_screen));
    EXPECT_TRUE(program.is_restored()) << signal;
  }
}

TEST_F(WatchCommand, Terminal_SuspendedAndContinued) {
  start("a");
  TerminalProgram program({"watch", "a"}, folder_.path(), 80, 24, {}, false);
  program.wait_for("q quit");
  kill(program.pid(), SIGTSTP);
  program.wait_for(leave_screen);
  int status = 0;
  ASSERT_EQ(waitpid(program.pid(), &status, WUNTRACED), program.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(program.is_restored());
  kill(program.pid(), SIGCONT);
  program.wait_for(enter_screen);
  program.wait_for("q quit");
  program.press("q");
  EXPECT_EQ(program.wait(), 0);
}

TEST_F(WatchCommand, Terminal_FolderThatDisappearsIsTold) {
  start("a");
  TerminalProgram program({"watch", "a"}, folder_.path(), 80, 24);
  program.wait_for("q quit");
  fs::remove_all(folder_ / "a");
  program.wait_for("the folder is gone");
  program.press("q");
  EXPECT_EQ(program.wait(), 0);
}

TEST_F(WatchCommand, Terminal_ThatCannotPlaceItsCursor_GetsLines) {
  train("a");
  TerminalProgram dumb({"watch", "a"}, folder_.path(), 80, 24, {{"TERM", "dumb"}});
  EXPECT_EQ(dumb.wait(), 0);
  EXPECT_FALSE(contains(dumb.output(), "\x1b")) << dumb.output();
  EXPECT_TRUE(contains(dumb.output(), "finished: ")) << dumb.output();
}

TEST_F(WatchCommand, Terminal_NoColorAndNoUnicode) {
  start("a");
  TerminalProgram program({"watch", "a"}, folder_.path(), 80, 24, {{"NO_COLOR", "1"}, {"LC_ALL", "C"}});
  program.wait_for("q quit");
  program.press("q");
  EXPECT_EQ(program.wait(), 0);
  for (const char* const color : {"\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[36m"})
    EXPECT_FALSE(contains(program.output(), color));
  for (const char c : program.output()) ASSERT_TRUE(static_cast<unsigned char>(c) < 0x80);
}

}  // namespace
}  // namespace tandem
