// tandem train, eval and predict, run as programs: their output, and that a run can be killed at any moment
// and resumed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>

#include "tandem/image/encode_png.h"
#include "tandem/ops/activation.h"
#include "tandem/train/model_file.h"
#include "tests/apps/program.h"
#include "tests/paths.h"
#include "tests/train/small_run.h"
#include "tests/train/trace_reading.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

std::int64_t line_count(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::int64_t file_count(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

// The program as a background process.
class Child {
 public:
  Child(const Words& words, const std::filesystem::path& folder, const std::filesystem::path& out) {
    std::vector<char*> arguments{const_cast<char*>("tandem")};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_ = fork();
    if (pid_ == 0) {
      const int none = open("/dev/null", O_WRONLY);
      if (chdir(folder.c_str()) == 0 && dup2(file, 1) >= 0 && dup2(none, 2) >= 0)
        execv(program_file, arguments.data());
      _exit(99);
    }
    close(file);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool is_over() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ <= 0;
  }
  void send(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  int wait() {  // the status from waitpid()
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = 0;
    return status_;
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

class TrainCommand : public testing::Test {
 protected:
  TrainCommand() { write_small_digits(folder_ / "data"); }

  ProgramResult run(const Words& words) {
    ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  void expect_failure(int status, const Words& words, const std::string& line) {
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, status) << line;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "tandem: error: " + line + "\n");
  }
  void expect_usage(const Words& words, const std::string& line) {
    const std::string command = words.front();
    expect_failure(2, words, line + " (see tandem " + command + " --help)");
  }
  // Arguments of a small run; flags in `more` replace the defaults.
  static Words with(const Words& more) {
    Words words{"train", "data"};
    for (const Words& flag : {Words{"--layers", "784,16,10"},
                              {"--epochs", "3"},
                              {"--batch-size", "4"},
                              {"--lr", "0.2"},
                              {"--momentum", "0.5"},
                              {"--device", "cpu"}})
      if (std::ranges::find(more, flag.front()) == more.end())
        words.insert(words.end(), flag.begin(), flag.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TempFolder folder_, streams_;
};

TEST_F(TrainCommand, Train_PrintsOneLinePerEpochThenTimeAndAccuracy) {
  const ProgramResult result = run(with({}));
  std::istringstream text(result.out);
  std::string line;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    ASSERT_TRUE(std::getline(text, line));
    int number = 0;
    double accuracy = 0;
    double low = 0, high = 0;
    ASSERT_EQ(
        std::sscanf(line.c_str(), "Epoch %d, accuracy %lf %% (%lf–%lf).", &number, &accuracy, &low, &high), 4)
        << line;
    EXPECT_EQ(number, epoch);
    EXPECT_LT(low, accuracy);
    EXPECT_GT(high, accuracy);
  }
  ASSERT_TRUE(std::getline(text, line));
  double seconds = -1;
  EXPECT_EQ(std::sscanf(line.c_str(), "Time: %lf s", &seconds), 1) << line;
  ASSERT_TRUE(std::getline(text, line));
  double accuracy = 0, low = 0, high = 0;
  int kept = 0;
  EXPECT_EQ(
      std::sscanf(line.c_str(), "Test accuracy: %lf %% (95 %% interval %lf–%lf)", &accuracy, &low, &high), 3)
      << line;
  ASSERT_TRUE(std::getline(text, line));
  EXPECT_EQ(std::sscanf(line.c_str(), "Kept model: epoch %d of 3, the best on the validation images", &kept),
            1)
      << line;
  EXPECT_NE(result.err.find(fmt::format("Best model (epoch {})", kept)), std::string::npos) << result.err;
  EXPECT_FALSE(std::getline(text, line));
  for (const char* file : {"config.toml", "log.csv", "best.safetensors", "last.ckpt", "report.html"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("runs/data-mlp-1/" + std::string(file)))) << file;
  EXPECT_NE(result.err.find("Data: data, 270 training, 30 validation and 100 test images"),
            std::string::npos);
  EXPECT_NE(result.err.find("Device: cpu (as requested)"), std::string::npos);
  run(with({"--epochs", "1"}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "runs/data-mlp-2/report.html"));
}

TEST_F(TrainCommand, Flags_OverrideFileAndFileOverridesPreset) {
  put_bytes(folder_ / "run.toml", "data = \"data\"\nlayers = [784, 8, 10]\nepochs = 1\nlr = 0.25\n");
  run({"train", "--preset", "best", "--config", "run.toml", "--lr", "0.125", "--out", "r"});
  const std::string config = text_of(folder_ / "r/config.toml");
  for (const char* line : {"layers = [784, 8, 10]\n", "lr = 0.125\n", "epochs = 1\n", "nesterov = true\n"})
    EXPECT_NE(config.find(line), std::string::npos) << line << config;
  put_bytes(folder_ / "run.toml", "epoch = 1\n");
  const ProgramResult wrong = run_program({"train", "--config", "run.toml"}, folder_.path());
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(wrong.err.rfind("tandem: error: [config] run.toml:1: unknown key 'epoch'", 0), 0u) << wrong.err;
}

TEST_F(TrainCommand, BadInput) {
  expect_usage({"train", "--epochs", "0"}, "--epochs: expected a whole number from 1 to 16777216, got '0'");
  expect_usage({"train", "--activation", "swish"},
               "--activation: expected one of " + activations().list() + ", got 'swish'");
  expect_usage({"train", "--preset", "worst"}, "--preset: expected one of best, record, got 'worst'");
  expect_usage({"train", "--save-every", "-1"}, "--save-every: expected seconds of 0 or more, got '-1'");
  expect_usage({"train", "data", "--color", "2"}, "unknown flag --color");
  expect_usage({"train", "--workers", "-1"},
               "--workers: expected auto or a whole number from 0 to 1024, got '-1'");
  expect_usage({"train", "--worker-kind", "dog"},
               "--worker-kind: expected one of thread, process, got 'dog'");
  expect_usage({"train", "--worker-timeout", "0"}, "--worker-timeout: expected a number above 0, got '0.0'");
  expect_usage({"train", "--augment-on", "moon"}, "--augment-on: expected one of auto, cpu, gpu, got 'moon'");
  expect_usage({"train", "--augment", "rotate 12 -12"},
               "--augment: rotate: expected the lower bound first, got 12 to -12");
  expect_usage({"train", "--augment", "rotate nan 3"},
               "--augment: rotate: expected degrees from -36000 to 36000, got nan to 3");
  expect_usage({"train", "--augment", "spin 1 2"},
               "--augment: expected none, digits, photo, or operations: rotate, shift, skew, noise, zoom, "
               "blur, crop, flip, or crop, flip, "
               "resize, center, letterbox, vertical_flip, rotation, perspective, jitter, randaugment, "
               "trivial_augment, erase, bilinear, bicubic; got 'spin 1 2' (--with FILE adds "
               "one of your own)");
  expect_failure(1, {"train", "digits", "--preset", "record"},
                 "[train] --preset record expects cifar10, got digits");
  expect_failure(1, {"train", "--resume", "none"}, "[train] none: no run to resume: it has no config.toml");
  expect_failure(1, {"train", "data", "--resume"}, "[train] expected the folder of the run: --resume RUNDIR");
  expect_failure(1, with({"--layers", "100,10"}),
                 "[train] expected layers from 784 inputs (28x28 gray images) to 10 classes, got 100,10");
  expect_failure(
      1, {"train", "data", "--out", "data"},
      "[train] data is not empty: expected a new or empty run folder, or resume = true (give another --out, "
      "or --resume RUNDIR)");
  expect_failure(1, with({"--trace", "none/trace.json"}),
                 "[train] cannot write none/trace.json: No such file or directory");
  expect_failure(1, {"eval", "data"},
                 "[model] data: expected a model file or the folder of a run, got a folder without "
                 "best.safetensors and last.ckpt");
  EXPECT_EQ(folder_.count(), 1u);
}

TEST_F(TrainCommand, Trace_WithProcessWorkers) {
  const ProgramResult result = run(with({"--augment", "digits", "--workers", "2", "--worker-kind", "process",
                                         "--validation", "0", "--out", "run", "--trace", "run/trace.json"}));
  EXPECT_NE(result.err.find("Trace: run/trace.json, "), std::string::npos) << result.err;
  const ReadTrace trace = read_trace(folder_ / "run/trace.json");
  ASSERT_GE(trace.tracks.size(), 2u);
  EXPECT_EQ(trace.tracks[0], "trainer");
  EXPECT_TRUE(trace.tracks[1].starts_with("worker ")) << trace.tracks[1];
  expect_apart(trace);
  expect_covered(bars_named(trace, "trainer", "steps"), 3, 75);
  expect_covered(bars_named(trace, "worker", "augment"), 3, 300);
  // Worker processes report their times on the trainer's clock.
  for (const ReadBar& filled : bars_named(trace, "worker", "augment"))
    for (const ReadBar& used : bars_named(trace, "trainer", "steps"))
      if (used.epoch == filled.epoch) {
        EXPECT_GE(used.begin_us, filled.end_us);
      }
}

// However a run is terminated, resuming it gives the same bits as an uninterrupted run.
TEST_F(TrainCommand, KilledAtAnyMoment_ResumesToSameBits) {
  const Words words = with({"--save-every", "0", "--out"});
  const auto to = [&](const std::string& name) {
    Words all = words;
    all.push_back(name);
    return all;
  };
  std::int64_t polls = 0;
  {
    Child whole(to("whole"), folder_.path(), streams_ / "out");
    for (; !whole.is_over(); ++polls) sched_yield();
    ASSERT_EQ(whole.wait(), 0);
  }
  std::mt19937_64 random(std::random_device{}());
  for (int round = 0; round < 20; ++round) {
    const std::string name = "killed" + std::to_string(round);
    {
      Child child(to(name), folder_.path(), streams_ / "out");
      const auto moment = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(polls));
      for (std::int64_t i = 0; i < moment && !child.is_over(); ++i) sched_yield();
      child.send(SIGKILL);
      child.wait();
    }
    Words again = to(name);
    again.push_back("--resume");
    run(again);
    expect_same_weights(folder_ / "whole", folder_ / name);
    const std::string log = text_of(folder_ / (name + "/log.csv"));
    EXPECT_EQ(line_count(log), 4) << log;
    EXPECT_EQ(file_count(folder_ / name), file_count(folder_ / "whole")) << name;
  }
}

TEST_F(TrainCommand, Signals_SaveAndStop) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string name = "run" + std::to_string(signal);
    {
      Child child(with({"--epochs", "1000000", "--out", name}), folder_.path(), streams_ / "out");
      while (!child.is_over() && line_count(text_of(streams_ / "out")) == 0) sched_yield();
      child.send(signal);
      const int status = child.wait();
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    }
    const std::string epochs = std::to_string(line_count(text_of(folder_ / (name + "/log.csv"))));
    const ProgramResult resumed = run({"train", "--resume", name, "--epochs", epochs});
    EXPECT_EQ(resumed.out.rfind("Epoch " + epochs + ", accuracy ", 0), 0u) << resumed.out;
    run(with({"--epochs", epochs, "--out", name + "whole"}));
    expect_same_weights(folder_ / name, folder_ / (name + "whole"));
  }
}

TEST_F(TrainCommand, Eval_ReportsAccuracy) {
  const ProgramResult trained = run(with({"--epochs", "1", "--out", "r"}));
  const ProgramResult text = run({"eval", "r/best.safetensors", "--own-data"});
  std::string accuracy = trained.out.substr(trained.out.find("Test accuracy: ") + 15);
  accuracy.resize(accuracy.find(')') + 1);
  EXPECT_NE(text.out.find("Accuracy: " + accuracy), std::string::npos) << text.out << trained.out;
  for (const char* word :
       {"Top-2:", "precision", "recall", "truth", "mlp 784,16,10 sigmoid on 100 test images"})
    EXPECT_NE(text.out.find(word), std::string::npos) << word << text.out;
  const auto json = nlohmann::json::parse(run({"eval", "r/best.safetensors", "data", "--json"}).out);
  EXPECT_EQ(json["images"], 100);
  EXPECT_LT(json["accuracy_interval"][0].get<double>(), json["accuracy"].get<double>());
  EXPECT_GT(json["accuracy_interval"][1].get<double>(), json["accuracy"].get<double>());
  EXPECT_GE(json["top_k"]["5"].get<double>(), json["top_k"]["2"].get<double>());
  EXPECT_GE(json["top_k"]["2"].get<double>(), json["accuracy"].get<double>());
  std::int64_t images = 0;
  for (const auto& row : json["confusion"])
    for (const auto& cell : row) images += cell.get<std::int64_t>();
  EXPECT_EQ(images, 100);

  const ImageSet digits = make_digits(4, 1);
  const ImageSet small{
      .images = digits.images.slice(1, 0, 20), .labels = digits.labels, .classes = digits.classes};
  write_split(folder_ / "cut", small, small);
  expect_failure(1, {"eval", "r/best.safetensors", "cut"},
                 "[eval] expected images of 28x28 with 1 channel, as the model's, got 20x28 gray in cut");
  expect_failure(1, {"predict", "r/best.safetensors", "cut/t10k-images-idx3-ubyte"},
                 "[predict] cut/t10k-images-idx3-ubyte: expected u8 images of shape [count, 28, 28], as the "
                 "model's, got [4, 20, 28] of u8");
}

TEST_F(TrainCommand, RunFolderAndCheckpoint_AreModels) {
  run(with({"--epochs", "1", "--out", "r"}));
  const std::string best = run({"eval", "r/best.safetensors", "data"}).out;
  EXPECT_EQ(run({"eval", "r", "data"}).out, best);
  EXPECT_EQ(run({"eval", "r/last.ckpt", "data"}).out, best);  // the only epoch is the best and the last
  const std::string image = "data/t10k-images-idx3-ubyte";
  EXPECT_EQ(run({"predict", "r/last.ckpt", image}).out, run({"predict", "r", image}).out);
  std::filesystem::remove(folder_ / "r/best.safetensors");
  EXPECT_EQ(run({"eval", "r", "data"}).out, best);
}

// A model file from elsewhere names any path and any download.
TEST_F(TrainCommand, Eval_UsesWhatTheModelFileNamesOnlyWhenAsked) {
  run(with({"--epochs", "1", "--out", "r"}));
  expect_failure(
      1, {"eval", "r"},
      "[eval] expected data: what the model file names, 'data', is not read or fetched unasked (give "
      "DATA, or --own-data to use it)");
  Model model = load_model(folder_ / "r/best.safetensors");
  model.info.data = "mnist";
  save_model(folder_ / "mnist.safetensors", *model.module, model.info);
  setenv("TANDEM_CACHE", (folder_ / "no-cache").c_str(), 1);
  expect_failure(
      1, {"eval", "mnist.safetensors"},
      "[eval] expected data: what the model file names, 'mnist', is not read or fetched unasked (give "
      "DATA, or --own-data to use it)");
  unsetenv("TANDEM_CACHE");
  model.info.data = "digits";  // rendered
  save_model(folder_ / "digits.safetensors", *model.module, model.info);
  EXPECT_NE(run({"eval", "digits.safetensors"}).out.find("Accuracy: "), std::string::npos);
}

TEST_F(TrainCommand, EqualRunsIntoDifferentFolders_GiveEqualModels) {
  run(with({"--epochs", "2", "--out", "a"}));
  run(with({"--epochs", "2", "--out=b", "--save-every", "60"}));
  run(with({"--out", "c", "--epochs", "2"}));
  EXPECT_EQ(text_of(folder_ / "a/best.safetensors"), text_of(folder_ / "c/best.safetensors"));
  EXPECT_EQ(text_of(folder_ / "b/best.safetensors").find("--out"), std::string::npos);
}

TEST_F(TrainCommand, SecondProcessInRunFolder_IsRefused) {
  Child first(with({"--epochs", "1000000", "--out", "r"}), folder_.path(), streams_ / "out");
  while (!first.is_over() && line_count(text_of(streams_ / "out")) == 0) sched_yield();
  const std::string line = "[train] r is in use by process " + std::to_string(first.pid()) +
                           " (wait for it or stop it, or give another --out)";
  expect_failure(1, with({"--out", "r"}), line);
  expect_failure(1, {"train", "--resume", "r"}, line);
  first.send(SIGTERM);
  const int status = first.wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
}

// The library's text, followed by the flag that helps.
TEST_F(TrainCommand, Errors_EndWithAdvice) {
  run(with({"--epochs", "1", "--lr", "0.5", "--out", "r"}));
  const auto expect_end = [&](const Words& words, const std::string& end) {
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(result.err.ends_with(end + "\n")) << result.err;
  };
  expect_end(
      {"train", "--resume", "r", "--lr", "0.25"},
      "[train] r/last.ckpt belongs to another configuration: lr (0.25, was 0.5) (give these options as "
      "they were, or start a new run with --out)");
  expect_end({"train", "data", "--epochs", "1", "--activation", "relu", "--lr", "1e30", "--out", "bad"},
             "(no checkpoint was saved before) (--lr sets the learning rate)");
}

TEST_F(TrainCommand, Predict_ImagesAndIdxFiles) {
  run(with({"--epochs", "2", "--out", "r"}));
  // The same image in an idx file, as a PNG, and enlarged and inverted.
  const Tensor first = make_digits(400, 7).images.slice(0, 300, 301);
  Image image = make_image(28, 28, 1), large = make_image(84, 84, 3);
  image.pixels = first.to_vector<std::uint8_t>();
  for (std::int64_t y = 0; y < 84; ++y)
    for (std::int64_t x = 0; x < 84; ++x)
      for (int c = 0; c < 3; ++c) large.at(y, x, c) = static_cast<std::uint8_t>(255 - image.at(y / 3, x / 3));
  save_png(folder_ / "a,b.png", image);
  save_png(folder_ / "large.png", large);
  const std::string model = "r/best.safetensors";
  const ProgramResult idx = run({"predict", model, "data/t10k-images-idx3-ubyte"});
  EXPECT_EQ(line_count(idx.out), 101);
  std::istringstream rows(idx.out);
  std::string header, row;
  std::getline(rows, header);
  std::getline(rows, row);
  EXPECT_EQ(header, "path,class,probability,0,1,2,3,4,5,6,7,8,9");
  const std::string prefix = "data/t10k-images-idx3-ubyte#0,";
  ASSERT_EQ(row.rfind(prefix, 0), 0u) << row;
  const std::string figures = row.substr(prefix.size());
  EXPECT_EQ(run({"predict", model, "a,b.png"}).out, header + "\n\"a,b.png\"," + figures + "\n");
  EXPECT_EQ(run({"predict", model, "large.png", "--invert"}).out, header + "\nlarge.png," + figures + "\n");
  EXPECT_EQ(run({"predict", model, "a,b.png", "large.png", "--csv", "out.csv"}).out, "");
  EXPECT_EQ(line_count(text_of(folder_ / "out.csv")), 3);
  expect_failure(1, {"predict", model, "none.png"}, "[predict] none.png: no such file");
  expect_usage({"predict", model}, "PATH is required");
}

}  // namespace
}  // namespace tandem
