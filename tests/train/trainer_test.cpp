// The training loop: it learns, and can stop anywhere and resume with the same bits.
#include "tests/train/trainer_case.h"

#include <algorithm>
#include <csignal>
#include <map>

#include <fmt/format.h>

#include "tandem/files/read_file.h"
#include "tandem/image/decode.h"
#include "tandem/report/csv.h"
#include "tandem/report/pictures.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/model_file.h"
#include "tandem/train/run_status.h"

namespace tandem {
namespace {

using Trainer = TrainerCase;

TEST_F(Trainer, Digits_LearnsAndWritesRunFolder) {
  options_ = {.data = "digits", .layers = {784, 32, 10}, .limit = 2000};
  options_.epochs = 6;
  options_.learning_rate = 0.3;
  std::vector<std::string> messages;
  std::vector<int> epochs;
  const TrainResult result =
      run("run", false,
          {.on_message = [&](const std::string& line) { messages.push_back(line); },
           .on_progress = [](const ProgressState& state) { EXPECT_LE(state.position, state.total); },
           .on_epoch = [&](const EpochRecord& record) { epochs.push_back(record.epoch); }});
  EXPECT_EQ(epochs, (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(
      messages.at(1),
      "Validation: every 10th training image is held out, 222 of 2,223; they choose the model, the test "
      "set does not");
  EXPECT_EQ(messages.at(0),
            "Data: digits, 2,000 training, 222 validation and 10,000 test images, 28x28 gray, 10 classes");
  EXPECT_GT(result.test_accuracy, 0.78);
  EXPECT_LT(result.epochs.back().train_loss, result.epochs.front().train_loss / 2);
  EXPECT_EQ(result.stopped_by, 0);
  const RunFolder folder{folder_ / "run"};
  TrainOptions saved = read_config(folder.config());
  EXPECT_TRUE(saved.device);
  saved.device.reset();
  EXPECT_EQ(saved.precision, MatmulPrecision::fp32);  // of a perceptron, on every device
  saved.precision.reset();
  EXPECT_EQ(differing_keys(saved, options_), std::vector<std::string>{});
  const std::string log = get_bytes(folder.log());
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 7);
  EXPECT_GT(std::filesystem::file_size(folder.events()), 100u);
  const std::string page = get_bytes(folder.report());
  EXPECT_NE(page.find("mlp on digits"), std::string::npos);
  EXPECT_NE(page.find("data:image/png"), std::string::npos);  // pictures of its mistakes

  Model model = load_model(folder.best());
  EXPECT_EQ(model.info.epoch, result.best_epoch);
  EXPECT_EQ(model.info.data, "digits");
  const ImageSet test = digits_split(10).test;
  EXPECT_EQ(evaluate(*model.module, test, LossKind::cross_entropy).accuracy, result.test_accuracy);
  EXPECT_EQ(model.info.accuracy, result.epochs[static_cast<std::size_t>(result.best_epoch) - 1].val_accuracy);
  EXPECT_EQ(result.chosen_on, "validation");
  EXPECT_NE(page.find("the best accuracy on 222 validation images; the test set chose nothing"),
            std::string::npos);
  EXPECT_NE(page.find("test accuracy, 95 % interval "), std::string::npos);
}

TEST_F(Trainer, SameSeed_GivesSameBits) {
  const TrainResult a = run("a"), b = run("b");
  expect_same_weights(folder_ / "a", folder_ / "b");
  EXPECT_EQ(get_bytes(folder_ / "a/best.safetensors"), get_bytes(folder_ / "b/best.safetensors"));
  for (std::size_t i = 0; i < a.epochs.size(); ++i) EXPECT_EQ(a.epochs[i].train_loss, b.epochs[i].train_loss);
  options_.seed = 2;
  run("c");
  EXPECT_NE(weights_of(read_checkpoint(folder_ / "a/last.ckpt")),
            weights_of(read_checkpoint(folder_ / "c/last.ckpt")));
}

// Stops twice, each time after a number of polls, and compares with a run that never stopped.
void stop_and_compare(TrainOptions options, const TempFolder& folder) {
  const auto run = [&](const std::string& name, bool resume, int polls) {
    const auto signal = [&polls] { return --polls == 0 ? SIGTERM : 0; };
    options.run_folder = folder / name;
    options.resume = resume;
    return train(options, {.stop_signal = signal});
  };
  const TrainResult whole = run("whole", false, 0);
  for (const int polls : {1, 2, 3, 4, 5}) {
    const std::string name = "stopped" + std::to_string(polls);
    const TrainResult stopped = run(name, false, polls);
    ASSERT_EQ(stopped.stopped_by, SIGTERM);
    EXPECT_EQ(std::filesystem::exists(folder / (name + "/report.html")), !stopped.epochs.empty());
    run(name, true, polls + 2);
    const TrainResult resumed = run(name, true, 0);
    expect_same_weights(folder / "whole", folder / name);
    ASSERT_EQ(resumed.epochs.size(), whole.epochs.size());
    for (std::size_t i = 0; i < whole.epochs.size(); ++i) {
      EXPECT_EQ(resumed.epochs[i].val_loss, whole.epochs[i].val_loss);
      EXPECT_EQ(resumed.epochs[i].train_accuracy, whole.epochs[i].train_accuracy);
      EXPECT_EQ(resumed.epochs[i].train_loss, whole.epochs[i].train_loss);
    }
    EXPECT_EQ(resumed.test_accuracy, whole.test_accuracy);
    std::string log = epoch_csv_header();
    for (const EpochRecord& record : resumed.epochs) log += epoch_csv_row(record);
    EXPECT_EQ(get_bytes(folder / (name + "/log.csv")), log);
  }
}

TEST_F(Trainer, StoppedAnywhere_ResumesWithSameBits) {
  stop_and_compare(options_, folder_);
}

// Without dropout the perceptron has its own engine; Adam needs the step count.
TEST_F(Trainer, StoppedInPerceptronEngine_ResumesWithSameBits) {
  options_ = small_options();
  options_.optimizer = "adam";
  options_.learning_rate = 0.01;
  options_.schedule = ScheduleKind::cosine;
  stop_and_compare(options_, folder_);
}

// The recipe is given by name; the checkpoint stores its operations.
TEST_F(Trainer, StoppedWithAugmentation_ResumesWithSameBits) {
  options_.transform = Transform::parse("digits");
  options_.workers = 2;
  stop_and_compare(options_, folder_);
}

// The order is stored with the run: the flag need not be given again.
TEST_F(Trainer, StoppedWithoutShuffling_ResumesWithSameBits) {
  run("shuffled");
  options_.shuffle = false;
  stop_and_compare(options_, folder_);
  EXPECT_EQ(read_config(folder_ / "whole/config.toml", {}).shuffle, false);
  EXPECT_NE(weights_of(read_checkpoint(folder_ / "shuffled/last.ckpt")),
            weights_of(read_checkpoint(folder_ / "whole/last.ckpt")));
}

TEST_F(Trainer, StoppedWithBalancedSampling_ResumesWithSameBits) {
  run("all");
  options_.balanced_sampling = true;
  options_.class_weights = ClassWeights::parse("3=2,5=0.5");
  stop_and_compare(options_, folder_);
  EXPECT_TRUE(read_config(folder_ / "whole/config.toml", {}).balanced_sampling);
  EXPECT_EQ(read_config(folder_ / "whole/config.toml", {}).class_weights.to_string(), "3=2,5=0.5");
  EXPECT_NE(weights_of(read_checkpoint(folder_ / "all/last.ckpt")),
            weights_of(read_checkpoint(folder_ / "whole/last.ckpt")));
}

// The kept model has the averaged weights, the checkpoint has both.
TEST_F(Trainer, StoppedWithClippedGradientsAndAverage_ResumesWithSameBits) {
  options_.clip_norm = 0.5;
  options_.ema = 0.9;
  options_.validation = 0;  // the last epoch is kept
  stop_and_compare(options_, folder_);
  const auto kept = weights_of(read_safetensors(folder_ / "whole/best.safetensors"));
  std::map<std::string, std::vector<float>> saved;
  for (const auto& [name, values] : weights_of(read_checkpoint(folder_ / "whole/last.ckpt")))
    saved[name] = values;
  for (const auto& [name, values] : kept) {
    EXPECT_EQ(saved.at("average." + name), values) << name;
    EXPECT_NE(saved.at("model." + name), values) << name;
  }
  Model best = load_model(folder_ / "whole/best.safetensors");
  const TrainingData data = load_training_data(options_, {});
  EXPECT_EQ(evaluate(*best.module, data.validation, options_.loss, best.info.input()).accuracy,
            best.info.accuracy);
}

// Before, in and after the epoch that begins with all layers.
TEST_F(Trainer, StoppedAroundUnfreezing_ResumesWithSameBits) {
  TrainOptions options = default_options("cnn", {});
  options.data = options_.data;
  options.limit = 40;
  options.epochs = 5;  // each asks for a signal at least once, and the last stop is at the fifth time
  options.batch_size = 16;
  options.device = cpu_device;
  options.unfreeze_at = 3;
  options.stage_lr_decay = 0.5;
  options.ema = 0.5;
  for (const bool all : {false, true}) {
    options.freeze = all;
    options.freeze_stages = all ? 0 : 2;
    const TempFolder folder;
    stop_and_compare(options, folder);
    std::map<int, std::vector<float>> first_layer;
    options.run_folder = folder / "watched";
    options.resume = false;
    const auto weights = [&] {
      for (const auto& [name, values] : weights_of(read_checkpoint(options.run_folder / "last.ckpt")))
        if (name == "model.conv1.weight") return values;
      return std::vector<float>();
    };
    train(options, {.on_epoch = [&](const EpochRecord& record) { first_layer[record.epoch] = weights(); }});
    EXPECT_EQ(first_layer[1], first_layer[2]);
    EXPECT_NE(first_layer[2], first_layer[3]);
    EXPECT_NE(first_layer[3], first_layer[4]);
  }
}

TEST_F(Trainer, StoppedCnn_ResumesWithSameBits) {
  TrainOptions options = default_options("cnn", {});
  options.data = options_.data;
  options.limit = 40;
  options.epochs = 2;
  options.batch_size = 16;
  options.device = cpu_device;
  const auto run = [&](const std::string& name, bool resume, int polls) {
    const auto signal = [&polls] { return --polls == 0 ? SIGTERM : 0; };
    options.run_folder = folder_ / name;
    options.resume = resume;
    return train(options, {.stop_signal = signal});
  };
  const TrainResult whole = run("whole", false, 0);
  ASSERT_EQ(run("stopped", false, 3).stopped_by, SIGTERM);
  EXPECT_EQ(run("stopped", true, 0).epochs.back().val_loss, whole.epochs.back().val_loss);
  expect_same_weights(folder_ / "whole", folder_ / "stopped");
  Model best = load_model(folder_ / "whole/best.safetensors");
  EXPECT_FALSE(best.info.expects_photos());
  EXPECT_EQ(best.info.norm, PixelNorm{});
  const TrainingData data = load_training_data(options, {});
  EXPECT_EQ(evaluate(*best.module, data.validation, options.loss, best.info.input()).accuracy,
            best.info.accuracy);
}

TEST_F(Trainer, WorkerCount_DoesNotChangeBits) {
  run("plain");
  options_.transform = Transform::parse("rotate -9 9 cubic, noise 0 0.2");
  options_.workers = 0;
  run("here");
  for (const std::optional<int> workers : {std::optional(1), std::optional(3), std::optional<int>()}) {
    const std::string name = workers ? std::to_string(*workers) : "auto";
    options_.workers = workers;
    run(name);
    expect_same_weights(folder_ / "here", folder_ / name);
  }
  EXPECT_NE(weights_of(read_checkpoint(folder_ / "plain/last.ckpt")),
            weights_of(read_checkpoint(folder_ / "here/last.ckpt")));
  EXPECT_NE(read_file("test", folder_ / "1/report.html", 1 << 24)
                .find("by 1 thread on the CPU; the trainer waited"),
            std::string::npos);
  EXPECT_EQ(read_file("test", folder_ / "plain/report.html", 1 << 24).find("the trainer waited"),
            std::string::npos);
}

TEST_F(Trainer, WorkerCountInAnotherOrder_DoesNotChangeBits) {
  options_.epochs = 2;
  options_.transform = Transform::parse("digits");
  for (const bool balanced : {false, true}) {
    options_.shuffle = balanced;
    options_.balanced_sampling = balanced;
    const std::string name = balanced ? "balanced" : "stored";
    for (const int workers : {0, 1, 2}) {
      options_.workers = workers;
      run(name + std::to_string(workers));
      expect_same_weights(folder_ / (name + "0"), folder_ / (name + std::to_string(workers)));
    }
  }
}

TEST_F(Trainer, SavesOnRequestAndPeriodically) {
  int saves = 0;
  const auto count_saves = [&](const ProgressState&) {
    std::error_code none;
    saves += std::filesystem::exists(folder_ / "often/last.ckpt", none);
  };
  run("often", false, {.on_progress = count_saves}, 0);
  EXPECT_GT(saves, 0);
  bool requested = false;
  options_.epochs = 1;
  run("requested", false,
      {.on_progress =
           [&](const ProgressState&) {
             std::error_code none;
             EXPECT_TRUE(!requested || std::filesystem::exists(folder_ / "requested/last.ckpt", none));
           },
       .save_requested = [&, polls = 0]() mutable { return requested = ++polls >= 2; }});
  EXPECT_TRUE(requested);
}

TEST_F(Trainer, ResumeOfEmptyOrFinishedRun_Works) {
  const TrainResult fresh = run("run", true);
  const auto written = std::filesystem::last_write_time(folder_ / "run/last.ckpt");
  const TrainResult again = run("run", true);
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "run/last.ckpt"), written) << "nothing has changed";
  EXPECT_EQ(again.test_accuracy, fresh.test_accuracy);
  EXPECT_EQ(again.epochs.size(), 4u);
}

TEST_F(Trainer, ResumeWithMoreEpochs_ConstantSchedule_SameBits) {
  options_.schedule = ScheduleKind::constant;
  run("whole");
  options_.epochs = 2;
  run("parts");
  options_.epochs = 4;
  run("parts", true);
  expect_same_weights(folder_ / "whole", folder_ / "parts");
}

TEST_F(Trainer, HeldOutImages_AreTheValidationSet) {
  options_.validation = 60;
  options_.limit = 200;
  const TrainResult result = run("run");
  Model best = load_model(folder_ / "run/best.safetensors");
  EXPECT_EQ(best.info.epoch, result.best_epoch);
  EXPECT_EQ(best.info.accuracy, result.epochs[static_cast<std::size_t>(result.best_epoch) - 1].val_accuracy);
  const TrainingData data = load_training_data(options_, {});
  EXPECT_EQ(data.train.count(), 200);
  EXPECT_EQ(evaluate(*best.module, data.validation, options_.loss).accuracy, best.info.accuracy);
  EXPECT_EQ(evaluate(*best.module, data.test, options_.loss).accuracy, result.test_accuracy);
}

// A set that is sorted by class must not lose a class to the validation set.
TEST_F(Trainer, DefaultValidation_HoldsOutEveryTenthImageOfSortedData) {
  const ImageSet digits = make_digits(300, 7);
  std::vector<std::int32_t> sorted(300);
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<std::int32_t>(i / 30);
  const ImageSet train{
      .images = digits.images, .labels = Tensor::from(sorted, {300}), .classes = digits.classes};
  write_split(folder_ / "sorted", train, digits.slice(0, 100));
  options_.data = path("sorted");
  const TrainingData data = load_training_data(options_, {});
  EXPECT_EQ(data.train.count(), 270);
  EXPECT_TRUE(data.held_out && data.chooses_model);
  std::vector<std::int32_t> expected(30);
  for (std::size_t i = 0; i < 30; ++i) expected[i] = static_cast<std::int32_t>(i / 3);
  EXPECT_EQ(data.validation.labels.to_vector<std::int32_t>(), expected);
  EXPECT_EQ(data.validation.images.slice(0, 1, 2).to_vector<std::uint8_t>(),
            digits.images.slice(0, 19, 20).to_vector<std::uint8_t>());
  EXPECT_EQ(data.train.dataset->image(9).pixels,  // image 9 is held out
            digits.images.slice(0, 10, 11).to_vector<std::uint8_t>());
}

TEST_F(Trainer, NoValidation_TrainsOnAllImagesAndKeepsTheLastEpoch) {
  options_.validation = 0;
  options_.learning_rate = 1e-12;  // every epoch is equally good
  options_.schedule = ScheduleKind::constant;
  std::vector<std::string> messages;
  const TrainResult result =
      run("run", false, {.on_message = [&](const std::string& line) { messages.push_back(line); }});
  EXPECT_EQ(
      messages.at(1),
      "Validation: no images are held out: the last epoch is kept; the test set is measured and chooses "
      "nothing");
  EXPECT_EQ(messages.at(0), "Data: data, 300 training and 100 test images, 28x28 gray, 10 classes");
  EXPECT_EQ(result.best_epoch, 4);
  EXPECT_EQ(result.chosen_on, "");
  EXPECT_EQ(result.test_accuracy, result.epochs.back().val_accuracy);
  EXPECT_EQ(load_model(folder_ / "run/best.safetensors").info.epoch, 4);
  options_.early_stopping = 1;
  EXPECT_EQ(run_error("other"),
            "[train] early_stopping requires images held out for validation, got validation = 0");
}

TEST_F(Trainer, ReportAndStepLog_AreWrittenBeforeTheEnd) {
  int signal = 0;
  const auto stop = [&](const EpochRecord& record) {
    if (record.epoch == 2) signal = SIGTERM;
    const std::string page = get_bytes(folder_ / "run/report.html");  // saved after each epoch
    EXPECT_NE(page.find("not finished"), std::string::npos);
    EXPECT_EQ(page.find("Confusion matrix"), std::string::npos);
  };
  run("run", false, {.on_epoch = stop, .stop_signal = [&] { return signal; }});
  const auto rows = [&] {
    const std::string text = get_bytes(folder_ / "run/steps.csv");
    EXPECT_EQ(text.substr(0, text.find('\n')),
              "step,epoch,loss,learning_rate,samples_per_second,waited_share,memory_mb,device_memory_mb,"
              "cpu_cores,gpu_share,gpu_memory_mb");
    return std::count(text.begin(), text.end(), '\n') - 1;
  };
  EXPECT_GE(rows(), 2);
  EXPECT_NE(get_bytes(folder_ / "run/report.html").find("accuracy after epoch"), std::string::npos);
  const auto before = std::filesystem::file_size(folder_ / "run/steps/events.out.tfevents.tandem");
  const TrainResult result = run("run", true);
  EXPECT_GE(rows(), 4);
  EXPECT_GT(std::filesystem::file_size(folder_ / "run/steps/events.out.tfevents.tandem"), before);
  EXPECT_NE(get_bytes(folder_ / "run/report.html").find("Confusion matrix"), std::string::npos);
  // The only row of an epoch has the epoch's mean loss.
  const std::string text = get_bytes(folder_ / "run/steps.csv");
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_EQ(last.substr(0, last.find(',')), std::to_string(4 * 39));
  if (rows() == 4) {
    EXPECT_NE(last.find(fmt::format(",{},", result.epochs.back().train_loss)), std::string::npos) << last;
  }
}

TEST_F(Trainer, Status_SaysHowTheRunGoes) {
  const auto status = [&] { return parse_run_status(get_bytes(folder_ / "run/status.json")).value(); };
  int signal = 0;
  const auto stop = [&](const EpochRecord&) {
    EXPECT_EQ(status().state, RunState::running);
    signal = SIGTERM;
  };
  run("run", false, {.on_epoch = stop, .stop_signal = [&] { return signal; }});
  EXPECT_EQ(status().state, RunState::stopped);
  EXPECT_FALSE(status().test_accuracy);
  const TrainResult result = run("run", true);
  const RunStatus last = status();
  EXPECT_EQ(last.test_accuracy, result.test_accuracy);
  EXPECT_EQ(last.tested_on, "test");
  EXPECT_EQ(last.state, RunState::finished);
  EXPECT_EQ(last.device, "cpu");
  EXPECT_NE(last.engine, "");
  EXPECT_EQ(last.validated_on, "validation");
  EXPECT_EQ(last.epochs, 4);
  EXPECT_EQ(last.steps_per_epoch, 39);
  EXPECT_EQ(last.samples_per_epoch, 270);
  ASSERT_FALSE(last.warnings.empty());
  EXPECT_EQ(last.warnings[0].substr(0, 25), "only 30 validation images");
  // The process's memory is in every row.
  const std::string rows = get_bytes(folder_ / "run/steps.csv");
  const std::string row = rows.substr(rows.rfind('\n', rows.size() - 2) + 1);
  NumberRows figures;
  figures.set(rows.substr(0, rows.find('\n')));
  ASSERT_TRUE(figures.set(row.substr(0, row.size() - 1))) << row;
  EXPECT_GT(figures.at("memory_mb"), 1);
  EXPECT_TRUE(std::isnan(figures.at("device_memory_mb"))) << row;  // no GPU
  EXPECT_TRUE(std::isnan(figures.at("gpu_share"))) << row;
}

TEST_F(Trainer, FirstImages_AreAPictureOfTheRunAndItsReport) {
  options_.transform = Transform::parse("digits");
  run("run");
  const std::string sheet = get_bytes(folder_ / "run/batch.jpg");
  const Image image = load_image(folder_ / "run/batch.jpg");
  EXPECT_GT(image.width, 3 * 112);  // 7 images in columns
  const std::string page = get_bytes(folder_ / "run/report.html");
  EXPECT_NE(page.find("src=\"data:image/jpeg;base64," + base64(sheet)), std::string::npos);
  EXPECT_NE(page.find("<th scope=\"row\">momentum</th><td>0.9</td>"), std::string::npos);
  // Another recipe gives other pixels.
  options_.transform = Transform::parse("none");
  run("plain");
  EXPECT_NE(get_bytes(folder_ / "plain/batch.jpg"), sheet);
  options_.balanced_sampling = true;  // other images would come first
  run("balanced");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "balanced/batch.jpg"));
}

TEST_F(Trainer, FirstImagesThatCannotBeWritten_DoNotEndTheRunOrChangeIt) {
  options_.transform = Transform::parse("digits");
  const auto fill_disk = [&](const std::string& line) {
    if (line.starts_with("Run folder: "))
      std::filesystem::create_symlink("/dev/full", folder_ / "run/batch.jpg");
  };
  run("run", false, {.on_message = fill_disk});
  EXPECT_FALSE(std::filesystem::is_regular_file(folder_ / "run/batch.jpg"));
  EXPECT_EQ(get_bytes(folder_ / "run/report.html").find("What the network saw"), std::string::npos);
  run("whole");
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_ / "whole/batch.jpg"));
  expect_same_weights(folder_ / "run", folder_ / "whole");
}

TEST_F(Trainer, FirstImages_StayWhenTheRunIsResumed) {
  options_.schedule = ScheduleKind::constant;
  options_.epochs = 1;
  run("run");
  put_bytes(folder_ / "run/batch.jpg", "the first session's");
  options_.epochs = 2;
  run("run", true);
  EXPECT_EQ(get_bytes(folder_ / "run/batch.jpg"), "the first session's");
}

TEST_F(Trainer, StepLogOfAnOlderVersion_GetsTheNewColumns) {
  options_.epochs = 1;
  options_.schedule = ScheduleKind::constant;
  run("run");
  put_bytes(folder_ / "run/steps.csv",
            "step,epoch,loss,learning_rate,samples_per_second,waited_share\n39,1,2,0.2,100.0,0.0000\n");
  options_.epochs = 2;
  run("run", true);
  const std::string text = get_bytes(folder_ / "run/steps.csv");
  EXPECT_NE(text.find("\n39,1,2,0.2,100.0,0.0000,,,,,\n"), std::string::npos) << text;
}

TEST_F(Trainer, EarlyStopping_StopsAfterEpochsWithoutProgress) {
  options_.schedule = ScheduleKind::constant;
  options_.learning_rate = 1e-12;  // nothing is learned: the first epoch stays the best
  options_.early_stopping = 2;
  options_.epochs = 50;
  EXPECT_EQ(run("run").epochs.size(), 3u);
  EXPECT_EQ(run("run", true).best_epoch, 1);
}

TEST_F(Trainer, SquaredErrorWithAdam_Learns) {
  options_ = {.data = options_.data, .layers = {784, 16, 10}};
  options_.loss = LossKind::mse;
  options_.epochs = 8;
  options_.optimizer = "adam";
  options_.learning_rate = 0.01;
  const TrainResult result = run("run");
  EXPECT_LT(result.epochs.back().train_loss, result.epochs.front().train_loss);
  EXPECT_GT(result.epochs.back().train_accuracy, 0.4);
}

}  // namespace
}  // namespace tandem
