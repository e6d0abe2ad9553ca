// Training on folders of photographs: finding the files, learning, stopping and resuming with the same bits,
// and files that are not images.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "tandem/files/safetensors.h"
#include "tandem/train/data_list.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/evaluation_report.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/progress.h"
#include "tandem/train/trainer.h"
#include "tests/train/photo_folder.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

class PhotoRun : public testing::Test {
 protected:
  PhotoRun() {
    options_ = default_options("cnn", {.photographs = true});
    options_.data = (folder_ / "photos").string();
    options_.image_size = 16;
    options_.epochs = 2;
    options_.batch_size = 4;
    options_.workers = 2;
    options_.device = cpu_device;
  }

  TrainResult run(const std::string& name, bool resume = false, const FitCallbacks& callbacks = {}) {
    options_.run_folder = folder_ / name;
    options_.resume = resume;
    return train(options_, callbacks);
  }
  std::string run_error() {
    return error_text([&] { run("run"); });
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TempFolder folder_;
  TrainOptions options_;
};

TEST_F(PhotoRun, FolderOfClasses_Learns) {
  write_photos(folder_ / "photos", 13);
  options_.epochs = 4;
  std::vector<std::string> messages;
  const TrainResult result =
      run("run", false, {.on_message = [&](const std::string& line) { messages.push_back(line); }});
  EXPECT_EQ(messages.at(0), "Validation: photographs 0, 6, 12, … of each class, 6 of 26");
  EXPECT_EQ(messages.at(1), "Data: photos, 20 training and 6 validation images, 16x16 RGB, 2 classes");
  EXPECT_EQ(result.tested_on, "validation");
  EXPECT_EQ(result.test_accuracy, 1);
  EXPECT_EQ(result.epochs.size(), 4u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/bad-images.csv"));

  Model model = load_model(folder_ / "run/best.safetensors");
  EXPECT_EQ(model.info.classes, (std::vector<std::string>{"blue", "red"}));
  EXPECT_EQ(model.info.norm, imagenet_norm);
  EXPECT_EQ(model.info.transform, "resize");
  EXPECT_EQ(model.info.photo_recipe(), evaluation_photo_recipe(16));
  EXPECT_EQ(model.info.accuracy, 1);
  const EvaluationReport validated = evaluate_model(model, "", {.own_data = true});
  EXPECT_EQ(validated.images, 6);
  EXPECT_EQ(validated.accuracy, 1);
  EXPECT_EQ(evaluate_model(model, options_.data).images, 26);

  const std::string page = get_bytes(folder_ / "run/report.html");
  for (const char* const words : {"Most confident correct predictions", "validation accuracy",
                                  "Confusion matrix", "blue/photo 1", "data:image/png", "cnn with 2 classes"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

TEST_F(PhotoRun, SplitFolder_FindsTrainValAndTest) {
  write_photos(folder_ / "photos/train", 4);
  write_photos(folder_ / "photos/val", 2, 10);
  options_.limit = 3;
  TrainingData data = load_training_data(options_, {});
  EXPECT_EQ(data.train.count(), 3);
  const PhotoTable& table = dynamic_cast<const PhotoDataset&>(*data.train.dataset).photos()->table();
  EXPECT_EQ(table.path(0), path("photos/train/blue/photo 100.png"));
  EXPECT_EQ(table.path(1), path("photos/train/red/photo 100.png"));
  EXPECT_EQ(table.path(2), path("photos/train/blue/photo 101.png"));
  EXPECT_EQ(data.validation.count(), 4);
  EXPECT_FALSE(data.held_out);
  EXPECT_EQ(data.validated_on + data.tested_on, "validationvalidation");
  options_.limit = 0;

  // A test folder with only one of the classes: labels are found by class name.
  save_png(folder_ / "x.png", tinted(true, 50));
  std::filesystem::create_directories(folder_ / "photos/test/red");
  std::filesystem::rename(folder_ / "x.png", folder_ / "photos/test/red/x.png");
  data = load_training_data(options_, {});
  EXPECT_TRUE(data.held_out);
  EXPECT_EQ(data.validated_on, "validation");
  EXPECT_EQ(data.tested_on, "test");
  EXPECT_EQ(data.test.labels.to_vector<std::int32_t>(), std::vector<std::int32_t>{1});
  EXPECT_EQ(data.test_names, std::vector<std::string>{path("photos/test/red/x.png")});
  std::filesystem::remove_all(folder_ / "photos/val");
  data = load_training_data(options_, {});
  EXPECT_EQ(data.validated_on, "validation");  // the test images choose nothing
  EXPECT_EQ(data.tested_on, "test");
  EXPECT_EQ(data.validation.count(), 2);
  EXPECT_EQ(data.train.count(), 6);
}

TEST_F(PhotoRun, StoppedAnywhere_ResumesWithSameBits) {
  write_photos(folder_ / "photos", 9);
  options_.transform = Transform::parse("crop, flip, jitter 0.2 0.2 0.2 0.1");
  options_.freeze_bn = true;
  TrainResult whole = run("whole");
  for (const int stop_at : {2, 3}) {
    const std::string name = "stopped" + std::to_string(stop_at);
    if (stop_at == 3) {
      std::filesystem::remove_all(folder_ / "whole");
      options_.balanced_sampling = true;
      whole = run("whole");
    }
    int polls = stop_at;
    ASSERT_EQ(run(name, false, {.stop_signal = [&] { return --polls == 0 ? SIGTERM : 0; }}).stopped_by,
              SIGTERM);
    options_.workers = 0;
    const TrainResult resumed = run(name, true);
    options_.workers = 2;
    expect_same_weights(folder_ / "whole", folder_ / name);
    EXPECT_EQ(resumed.epochs.back().val_loss, whole.epochs.back().val_loss);
    EXPECT_EQ(resumed.test_loss, whole.test_loss);
    EXPECT_EQ(resumed.test_accuracy, whole.test_accuracy);
  }
}

// Photographs that come or go must not move others between the training and the validation set, and a class
// of another name must not take over the outputs of an old one.
TEST_F(PhotoRun, ResumeAfterDataChanged_IsRefusedWithTheFirstDifference) {
  write_photos(folder_ / "photos", 9);
  put_bytes(folder_ / "photos/blue/photo 100.png", "not an image");  // held out, and must stay so
  int signal = 0;
  const auto stop_after_first_epoch = [&](const std::string& name, bool resume) {
    signal = 0;
    return run(
        name, resume,
        {.on_epoch = [&](const EpochRecord&) { signal = SIGTERM; }, .stop_signal = [&] { return signal; }});
  };
  ASSERT_EQ(stop_after_first_epoch("run", false).stopped_by, SIGTERM);
  const auto expect_difference = [&](const std::string& difference) {
    EXPECT_EQ(error_text([&] { run("run", true); }),
              "[train] " + path("run") + ": the data changed since the run was saved: " + difference);
  };
  const auto folder = folder_ / "photos";
  std::filesystem::rename(folder / "blue", folder / "violet");
  expect_difference("class 0 was 'blue', is 'red'");
  std::filesystem::rename(folder / "violet", folder / "blue");
  std::filesystem::rename(folder / "red/photo 103.png", folder_ / "kept.png");
  expect_difference("photograph " + path("photos/red/photo 103.png") + " is missing");
  std::filesystem::rename(folder_ / "kept.png", folder / "red/photo 103.png");
  save_png(folder / "blue/photo 000.png", tinted(false, 77));
  expect_difference("photograph " + path("photos/blue/photo 000.png") + " is new");

  const DataList before = parse_data_list(get_bytes(folder_ / "run/data.json"), "");
  options_.accept_changed_data = true;
  std::vector<std::string> messages;
  EXPECT_EQ(run("run", true, {.on_message = [&](const std::string& line) { messages.push_back(line); }})
                .epochs.size(),
            2u);
  EXPECT_NE(std::ranges::find(messages, "Warning: the data changed since the run was saved: photograph " +
                                            path("photos/blue/photo 000.png") + " is new"),
            messages.end());
  const DataList after = parse_data_list(get_bytes(folder_ / "run/data.json"), "");
  EXPECT_EQ(after.validation, before.validation);
  EXPECT_EQ(after.training.size(), before.training.size() + 1);
  options_.accept_changed_data = false;
  EXPECT_EQ(run("run", true).epochs.size(), 2u);  // the accepted data is now that of the run
}

// The part of a report with the confusion matrix and the classified images. The footer behind it
// holds the date and the load of the machine.
std::string evaluation_in(const std::filesystem::path& report) {
  const std::string page = get_bytes(report);
  const std::size_t begin = page.find("<h2>Confusion matrix");
  const std::size_t end = page.find("<footer>");
  EXPECT_LT(begin, end);
  EXPECT_NE(end, std::string::npos);
  return begin < end ? page.substr(begin, end - begin) : "";
}

TEST_F(PhotoRun, BestEpoch_IsReportedAlsoAfterAResume) {
  write_photos(folder_ / "photos", 9);
  options_.learning_rate = 1e-12;  // nothing is learned: the first epoch stays the best
  const TrainResult whole = run("whole", false);
  EXPECT_EQ(whole.best_epoch, 1);
  EXPECT_EQ(whole.test_loss, whole.epochs[0].val_loss);
  EXPECT_EQ(whole.test_accuracy, whole.epochs[0].val_accuracy);

  // After a resume the evaluation must be repeated with the saved model.
  int signal = 0;
  ASSERT_EQ(
      run("stopped", false,
          {.on_epoch = [&](const EpochRecord&) { signal = SIGTERM; }, .stop_signal = [&] { return signal; }})
          .stopped_by,
      SIGTERM);
  const TrainResult resumed = run("stopped", true);
  EXPECT_EQ(resumed.best_epoch, 1);
  EXPECT_EQ(resumed.test_loss, whole.test_loss);
  EXPECT_EQ(resumed.test_accuracy, whole.test_accuracy);
  EXPECT_TRUE(evaluation_in(folder_ / "stopped/report.html") == evaluation_in(folder_ / "whole/report.html"));
}

TEST_F(PhotoRun, UnreadableImages_AreSkippedAndListed) {
  write_photos(folder_ / "photos/train", 6);
  write_photos(folder_ / "photos/val", 2, 10);
  const std::string good = get_bytes(folder_ / "photos/train/red/photo 101.png");
  put_bytes(folder_ / "photos/train/red/cut \"short\",\n.png", good.substr(0, good.size() / 2));
  put_bytes(folder_ / "photos/val/blue/größe.jpg", "no image");
  std::vector<std::string> messages;
  const auto link = [&](const EpochRecord& record) {
    if (record.epoch == 1)
      std::filesystem::create_hard_link(folder_ / "run/bad-images.csv", folder_ / "written once.csv");
  };
  run("run", false,
      {.on_message = [&](const std::string& line) { messages.push_back(line); }, .on_epoch = link});
  EXPECT_TRUE(std::filesystem::equivalent(folder_ / "run/bad-images.csv", folder_ / "written once.csv"));
  EXPECT_EQ(
      std::ranges::count(messages, "Not read: 2 files: 2 damaged; listed in " + path("run/bad-images.csv")),
      1);
  EXPECT_NE(
      std::ranges::find(messages, "Data: photos, 12 training and 4 validation images, 16x16 RGB, 2 classes"),
      messages.end());
  const std::string list = get_bytes(folder_ / "run/bad-images.csv");
  EXPECT_EQ(list.substr(0, 17), "path,kind,reason\n");
  EXPECT_NE(list.find("\"" + path("photos/train/red/cut \"\"short\"\",\n.png") + "\","), std::string::npos)
      << list;
  EXPECT_NE(list.find(path("photos/val/blue/größe.jpg") + ","), std::string::npos) << list;
  options_.on_bad_image = OnBadImage::fail;
  EXPECT_NE(error_text([&] { run("strict"); }).find("größe.jpg: "), std::string::npos);
  std::filesystem::remove(folder_ / "photos/val/blue/größe.jpg");
  EXPECT_NE(error_text([&] { run("strict"); }).find("cut \"short\""), std::string::npos);
}

TEST_F(PhotoRun, FoldersWithoutData_AreErrors) {
  std::filesystem::create_directories(folder_ / "photos");
  EXPECT_EQ(run_error(), "[folder] " + path("photos") + ": expected a folder for each class in it, got none");
  write_photos(folder_ / "photos", 1);
  EXPECT_EQ(run_error(), "[photos] " + path("photos") +
                             ": class 'blue' has only one image: expected one for training and one for "
                             "validation");
  std::filesystem::create_directories(folder_ / "photos/green");
  EXPECT_NE(run_error().find("class 'green' has no images"), std::string::npos);
  for (const char* const name : {"green", "red"}) std::filesystem::remove_all(folder_ / "photos" / name);
  EXPECT_EQ(run_error(), "[photos] " + path("photos") + ": expected two or more classes, got one: 'blue'");
  std::filesystem::remove_all(folder_ / "photos");
  write_photos(folder_ / "photos/train", 2);
  std::filesystem::rename(folder_ / "photos/train", folder_ / "photos/x");
  std::filesystem::rename(folder_ / "photos/x/red", folder_ / "photos/train");
  std::filesystem::remove_all(folder_ / "photos/x");
  EXPECT_EQ(run_error(),
            "[photos] " + path("photos") +
                ": expected two or more classes, got one: 'train' (expected one folder per class "
                "in it)");
  std::filesystem::remove_all(folder_ / "photos");
  write_photos(folder_ / "photos/train", 2);
  write_photos(folder_ / "photos/val", 1, 0, "blue", "green");
  EXPECT_EQ(run_error(), "[photos] " + path("photos/val") +
                             ": class 'green' is not one of the 2 known classes: blue, red");
  std::filesystem::remove_all(folder_ / "photos/val/green");
  for (const char* const name : {"100", "101"})
    for (const char* const kind : {"red", "blue"})
      put_bytes(folder_ / "photos/train" / kind / (std::string("photo ") + name + ".png"), "bad");
  EXPECT_NE(run_error().find("[photos] expected photographs that can be read, got none in 4 files"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

// A recipe of crops and flips only has a meaning for small images too.
TEST_F(PhotoRun, FlipsOnly_AreStoredAsWhatTheyMeanForPhotographs) {
  write_photos(folder_ / "photos", 3);
  options_.transform = Transform::parse("flip");
  options_.epochs = 1;
  run("run");
  EXPECT_EQ(read_config(folder_ / "run/config.toml", {}).transform.to_string(), "resize, flip 0.5");
}

TEST_F(PhotoRun, OptionsForOtherData_AreErrors) {
  write_photos(folder_ / "photos", 3);
  options_.transform = Transform::parse("rotate -9 9");
  EXPECT_EQ(
      run_error(),
      "[train] expected a recipe for photographs, such as photo or 'crop, flip 0.5', got 'rotate -9 9'");
  options_.transform = Transform::parse("photo");
  options_.model = "mlp";
  EXPECT_EQ(run_error(),
            "[train] expected layers from 768 inputs (16x16 RGB images) to 2 classes, got 784,200,10");
  options_.model = "cnn";
  options_.validation = 2;
  EXPECT_EQ(
      run_error(),
      "[train] expected no validation count for photographs, which are validated on val/ or every 6th image, "
      "got 2");
  options_.validation.reset();
  options_.limit = 5;
  EXPECT_EQ(run_error(), "[train] expected limit of at most 4 training images of photos, got 5");
}

TEST_F(PhotoRun, Plates_NeedNoFiles) {
  options_.data = "plates";
  options_.limit = 4;
  ProgressState last;
  const RenderObserver rendering =
      observe_rendering([&](const ProgressState& state) { last = state; }, {.delay_ms = 0, .interval_ms = 0});
  const TrainingData data = load_training_data(options_, {});
  EXPECT_STREQ(last.phase, "Rendering");
  EXPECT_GT(last.position, 200);
  EXPECT_EQ(last.total, 204);
  EXPECT_EQ(data.train.classes, (std::vector<std::string>{"cleaned", "dirty"}));
  EXPECT_EQ(data.train.count(), 4);
  EXPECT_EQ(data.train.dataset->image(3).height, 480);
  EXPECT_EQ(data.train.dataset->label(3), 1);
  EXPECT_EQ(data.validation.count(), 200);
  EXPECT_EQ(data.validation.images.size(1), 16);
  EXPECT_FALSE(is_photo_data("mnist"));
  EXPECT_FALSE(is_photo_data("no such folder"));
}

// For a contact sheet: as for training, but nothing is rendered before it is read.
TEST_F(PhotoRun, TrainingPhotos_AreThoseOfTheRun) {
  write_photos(folder_ / "photos", 4);
  for (const std::string& name : {std::string("plates"), options_.data}) {
    options_.data = name;
    options_.limit = 3;
    std::int64_t rendered = 0;
    const RenderObserver rendering = observe_rendering(
        [&](const ProgressState& state) { rendered = state.total; }, {.delay_ms = 0, .interval_ms = 0});
    const TrainingImages photos = training_photos(options_);
    EXPECT_EQ(rendered, 0);
    const TrainingData data = load_training_data(options_, {});
    ASSERT_EQ(photos.count(), 3);
    EXPECT_EQ(photos.classes, data.train.classes);
    EXPECT_EQ(photos.height, data.train.height);
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(photos.dataset->image(i).pixels, data.train.dataset->image(i).pixels);
      EXPECT_EQ(photos.dataset->label(i), data.train.dataset->label(i));
    }
  }
}

TEST_F(PhotoRun, PretrainedAuto_TakesWeightsFromTheGivenFile) {
  write_photos(folder_ / "photos", 3);
  const TempFolder cache;
  setenv("TANDEM_CACHE", cache.path().c_str(), 1);
  put_bytes(folder_ / "resnet18-f37072fd.pth", "a cut file");
  options_.model = "resnet18";
  options_.pretrained = "auto";
  options_.from = path("resnet18-f37072fd.pth");
  const std::string text = run_error();
  unsetenv("TANDEM_CACHE");
  EXPECT_TRUE(
      text.starts_with("[fetch] " + options_.from + ": expected the resnet18-f37072fd.pth of resnet18"))
      << text;
  EXPECT_TRUE(text.ends_with(": the file has only 10 of 46830571 bytes")) << text;
}

TEST_F(PhotoRun, FrozenRandomWeights_AreWarnedAbout) {
  write_photos(folder_ / "photos", 3);
  options_.epochs = 1;
  options_.freeze = true;
  std::vector<std::string> messages;
  run("run", false, {.on_message = [&](const std::string& line) { messages.push_back(line); }});
  EXPECT_EQ(
      std::ranges::count_if(
          messages, [](const std::string& line) { return line.starts_with("Warning: all layers but "); }),
      1);
}

TEST_F(PhotoRun, PretrainedWeights_AreLoadedOrRejected) {
  write_photos(folder_ / "photos", 3);
  options_.epochs = 1;
  options_.freeze = options_.freeze_bn = true;
  // For three classes, without num_batches_tracked.
  const auto save = [&](const std::unique_ptr<Module>& module, bool spoil = false) {
    TensorFile file{.metadata = {}, .tensors = module->state_dict()};
    std::erase_if(file.tensors, [](const NamedTensor& named) { return named.name.ends_with("tracked"); });
    if (spoil) file.tensors[0].tensor.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    write_safetensors(folder_ / "weights.safetensors", file);
  };
  const auto value = [](const NamedTensors& tensors, const std::string& name) {
    return std::ranges::find(tensors, name, &NamedTensor::name)->tensor.to_vector<float>();
  };
  options_.pretrained = path("weights.safetensors");
  const auto made = make_model({.model = "cnn", .channels = 3, .classes = 3}, 9);
  save(made);
  std::vector<std::string> messages;
  run("run", false, {.on_message = [&](const std::string& line) { messages.push_back(line); }});
  EXPECT_NE(
      std::ranges::find(messages, "Weights: " + options_.pretrained +
                                      ", with a new last layer, all but the last layer frozen, batch-norm "
                                      "statistics frozen"),
      messages.end());
  const NamedTensors after = load_model(folder_ / "run/best.safetensors").module->state_dict();
  for (const char* const name : {"conv1.weight", "conv6.weight", "bn3.running_var", "bn3.bias"})
    EXPECT_EQ(value(after, name), value(made->state_dict(), name)) << name;  // frozen
  EXPECT_NE(value(after, "fc.weight"),
            value(make_model({.model = "cnn", .channels = 3, .classes = 2}, 1)->state_dict(), "fc.weight"));

  save(make_model({.model = "resnet18", .channels = 3, .classes = 2}, 9));
  const std::string other = error_text([&] { run("other"); });
  EXPECT_NE(other.find("weights.safetensors: not the weights of this model: [load_state_dict] expected the "),
            std::string::npos)
      << other;
  EXPECT_NE(other.find("missing: conv2.weight"), std::string::npos) << other;
  EXPECT_NE(other.find("unexpected: layer1"), std::string::npos) << other;
  EXPECT_NE(other.find("conv1.weight (expected f32 [32, 3, 3, 3], got f32 [64, 3, 7, 7])"), std::string::npos)
      << other;
  save(make_model({.model = "cnn", .channels = 3, .classes = 2}, 9), true);
  EXPECT_EQ(error_text([&] { run("other"); }),
            "[weights] " + options_.pretrained +
                ": expected finite weights, got nan at element 0 of tensor 'conv1.weight'");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
}

}  // namespace
}  // namespace tandem
