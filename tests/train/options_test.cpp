#include "tandem/train/options.h"

#include "tandem/nn/model_registry.h"

#include <gtest/gtest.h>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

std::string table_error(const std::string& text) {
  return error_text([&] {
    TrainOptions options;
    apply_table(options, parse_toml(text, "run.toml"));
  });
}

std::string field_error(const char* key, const std::string& text) {
  return error_text([&] {
    TrainOptions options;
    train_field(key).set(options, parse_field_value(train_field(key), text));
  });
}

TEST(TrainOptions, WrittenToFile_RoundTrip) {
  TrainOptions options{.data = "a \"folder\"", .layers = {9, 7, 5, 3}};
  options.learning_rate = 0.1 + 0.2;
  options.seed = 77;
  options.device = cuda_device(1);
  options.workers = 3;
  options.augment_on = AugmentPlace::gpu;
  options.activation = Activation::tanh;
  options.loss = LossKind::mse;
  options.optimizer = "adamw";
  options.schedule = ScheduleKind::one_cycle;
  options.precision = MatmulPrecision::tf32;
  options.nesterov = true;
  const TempFolder folder;
  put_bytes(folder / "run.toml", to_toml(to_table(options)));
  EXPECT_EQ(differing_keys(read_config(folder / "run.toml"), options), std::vector<std::string>{});
  EXPECT_FALSE(differing_keys(TrainOptions{}, options).empty());
}

TEST(TrainOptions, EveryField_RoundTripsAsText) {
  TrainOptions best;
  apply_preset(best, "best");
  TrainOptions rebuilt;
  for (const TrainField& field : train_fields())
    field.set(rebuilt, parse_field_value(field, plain_text(field.get(best))));
  EXPECT_EQ(differing_keys(rebuilt, best), std::vector<std::string>{});
  EXPECT_EQ(to_table(best).entries.size(), train_fields().size());
}

TEST(TrainOptions, KeysMissingInFile_KeepTheirValues) {
  TrainOptions options;
  options.epochs = 3;
  apply_table(options, parse_toml("# a run\nlr = 1\nlayers = [4, 2]\n", "run.toml"));
  EXPECT_EQ(options.epochs, 3);
  EXPECT_EQ(options.learning_rate, 1.0);
  EXPECT_EQ(options.layers, (std::vector<std::int64_t>{4, 2}));
}

TEST(TrainOptions, ErrorsInFile_NameTheLine) {
  EXPECT_EQ(table_error("epochs = 3\nlearnrate = 0.1\n").substr(0, 57),
            "[config] run.toml:2: unknown key 'learnrate', expected on");
  EXPECT_EQ(table_error("\nepochs = 0"),
            "[config] run.toml:2: epochs: expected a whole number from 1 to 16777216, got '0'");
  EXPECT_EQ(table_error("epochs = 2.5"),
            "[config] run.toml:1: epochs: expected a whole number from 1 to 16777216, got '2.5'");
  EXPECT_EQ(table_error("lr = \"fast\""), "[config] run.toml:1: lr: expected a number above 0, got 'fast'");
  EXPECT_EQ(table_error("nesterov = 1"), "[config] run.toml:1: nesterov: expected true or false, got '1'");
  EXPECT_EQ(table_error("activation = 3"), "[config] run.toml:1: activation: expected text in quotes, got 3");
  EXPECT_EQ(table_error("layers = 784"),
            "[config] run.toml:1: layers: expected two or more sizes from 1 to 16777216, such as 784,200,10, "
            "got '784'");
  EXPECT_EQ(table_error("lr = {x = 1}"), "[config] run.toml:1: lr: expected a number above 0, got '{x = 1}'");
  EXPECT_EQ(table_error("seed = 1979-05-27"),
            "[config] run.toml:1: seed: expected a whole number of 0 or more, got '1979-05-27'");
}

// Options are not grouped: a table is valid TOML, and its keys are unknown.
TEST(TrainOptions, TablesInFile_AreUnknownKeys) {
  EXPECT_EQ(table_error("epochs = 3\n[train]\n\nlr = 0.1\n"),
            "[config] run.toml:4: unknown key 'train.lr'; did you mean 'lr', outside of tables?");
  EXPECT_EQ(table_error("train.'a b'.epoch = 1"),
            "[config] run.toml:1: unknown key 'train.\"a b\".epoch'; did you mean 'epochs'?");
  EXPECT_EQ(table_error("\n[train]").substr(0, 49), "[config] run.toml:2: unknown key 'train', expecte");
  EXPECT_EQ(table_error("[[train]]\nlr = 1").substr(0, 49),
            "[config] run.toml:1: unknown key 'train', expecte");
}

TEST(TrainOptions, FilesThatAreNotToml_AreRefused) {
  const TempFolder folder;
  const std::string path = (folder / "run.toml").string();
  const auto error = [&](const std::string& bytes) {
    put_bytes(path, bytes);
    return error_text([&] { read_config(path); });
  };
  EXPECT_EQ(error("lr = 1\ndata = \"\xFF\""), "[config] " + path + ":2: expected UTF-8, got the byte 0xFF");
  EXPECT_EQ(error(std::string("\x1F\x8B\x08\x00", 4)),
            "[config] " + path + ":1: expected text, got the control character U+001F");
  put_bytes(path, "");
  EXPECT_EQ(differing_keys(read_config(path), TrainOptions()), std::vector<std::string>{});
  EXPECT_EQ(field_error("data", "ph\xFFtos"), "expected text in UTF-8, got 'ph\uFFFDtos'");
}

TEST(TrainOptions, BadFieldValues_AreErrors) {
  EXPECT_EQ(field_error("activation", "swish"), "expected one of " + activations().list() + ", got 'swish'");
  EXPECT_EQ(field_error("layers", "784,,10"),
            "expected two or more sizes from 1 to 16777216, such as 784,200,10, got '784,,10'");
  EXPECT_EQ(field_error("clip_norm", "-1"), "expected a number of 0 or more, got '-1.0'");
  EXPECT_EQ(field_error("ema", "1"), "expected a number of 0 or more and below 1, got '1.0'");
  EXPECT_EQ(field_error("ema", "-0.1"), "expected a number of 0 or more and below 1, got '-0.1'");
  EXPECT_EQ(field_error("freeze", "0"), "expected true, false or a number of stages from 1, got '0'");
  EXPECT_EQ(field_error("freeze", "some"), "expected true, false or a number of stages from 1, got 'some'");
  EXPECT_EQ(field_error("stage_lr_decay", "0"), "expected a number above 0, got '0.0'");
  EXPECT_EQ(field_error("focal_gamma", "nan"), "expected a number of 0 or more, got 'nan'");
  EXPECT_EQ(field_error("class_weights", "cat=-1"),
            "expected a finite weight of 0 or more for 'cat', got -1");
  EXPECT_EQ(field_error("lr", "0"), "expected a number above 0, got '0.0'");
  EXPECT_EQ(field_error("lr", "nan"), "expected a number above 0, got 'nan'");
  EXPECT_EQ(field_error("dropout", "1"), "expected a number of 0 or more and below 1, got '1.0'");
  EXPECT_EQ(field_error("batch_size", "many"), "expected a whole number from 1 to 1048576, got 'many'");
  EXPECT_EQ(field_error("device", "gpu"), "expected auto, cpu, cuda or a device such as cuda:1, got 'gpu'");
  EXPECT_EQ(field_error("model", "vgg"), "expected one of " + models().list() + ", got 'vgg'");
  EXPECT_EQ(field_error("image_size", "7"), "expected a whole number from 8 to 4096, got '7'");
  EXPECT_EQ(field_error("on_bad_image", "ignore"), "expected one of skip, fail, got 'ignore'");
  EXPECT_EQ(field_error("seed", "-1"), "expected a whole number of 0 or more, got '-1'");
}

TEST(TrainOptions, CropsAndFlipsOnly_MeanWhatTheImagesNeed) {
  TrainOptions options;
  options.image_size = 32;
  train_field("augment").set(options, TomlValue(std::string("crop 0.5 1, flip")));
  const Transform photographs = resolve_options(options, true).transform;
  EXPECT_EQ(photographs.output_size({5, 7, 1}), (ImageSize{32, 32, 3}));
  EXPECT_EQ(photographs.to_string(), "crop 0.5 1 0.75 1.3333333333333333, flip 0.5");
  const Transform digits = resolve_options(options, false).transform;
  EXPECT_EQ(digits, Transform(compose({random_crop({0.5, 1}), random_flip(0.5)})));
  // As a run folder stores and restores it.
  train_field("augment").set(options, TomlValue(digits.to_string()));
  EXPECT_EQ(resolve_options(options, false).transform, digits);
}

TEST(TrainOptions, IncompatibleValues_AreErrors) {
  const auto error = [](const auto& change) {
    TrainOptions options;
    change(options);
    return error_text([&] { check_options(options); });
  };
  EXPECT_EQ(error([](TrainOptions& o) { o.loss = LossKind::mse, o.label_smoothing = 0.1; }),
            "[train] label_smoothing requires loss cross-entropy, got mse");
  EXPECT_EQ(error([](TrainOptions& o) { o.loss = LossKind::focal, o.label_smoothing = 0.1; }),
            "[train] label_smoothing requires loss cross-entropy, got focal");
  EXPECT_EQ(error([](TrainOptions& o) { o.loss = LossKind::focal, o.mixup = 0.1, o.model = "cnn"; }),
            "[train] mixup and cutmix require loss cross-entropy, got focal");
  EXPECT_EQ(error([](TrainOptions& o) { o.loss = LossKind::mse, o.class_weights.balanced = true; }),
            "[train] class_weights require loss cross-entropy or focal, got mse");
  EXPECT_EQ(error([](TrainOptions& o) { o.focal_gamma = -1; }),
            "[train] focal_gamma: expected a number of 0 or more, got '-1.0'");
  EXPECT_EQ(error([](TrainOptions& o) { o.optimizer = "adam", o.momentum = 0.9; }),
            "[train] expected no momentum with optimizer adam, which has none, got 0.9");
  EXPECT_EQ(error([](TrainOptions& o) { o.nesterov = true; }),
            "[train] expected momentum above 0 with nesterov, got 0");
  EXPECT_EQ(error([](TrainOptions& o) { o.shuffle = false, o.batches_per_epoch = 5; }),
            "[train] expected shuffle epoch with batches_per_epoch, which are random batches, got none");
  EXPECT_EQ(error([](TrainOptions& o) { o.shuffle = false, o.balanced_sampling = true; }),
            "[train] expected shuffle epoch with balanced_sampling, whose order is random, got none");
  EXPECT_EQ(error([](TrainOptions& o) { o.stage_lr_decay = 1.5; }),
            "[train] expected stage_lr_decay of at most 1, got 1.5");
  EXPECT_EQ(error([](TrainOptions& o) { o.stage_lr_decay = 0.5; }),
            "[train] stage_lr_decay requires a model of images, got mlp");
  EXPECT_EQ(error([](TrainOptions& o) { o.unfreeze_at = 2; }),
            "[train] unfreeze_at requires freeze: no layer is frozen");
  for (const std::int64_t epoch : {1, 16})
    EXPECT_EQ(error([&](TrainOptions& o) { o.unfreeze_at = epoch; }),
              "[train] expected unfreeze_at from 2 to 15, the last epoch, got " + std::to_string(epoch));
  EXPECT_EQ(error_text([] { check_options({.freeze_stages = 1}); }),
            "[train] pretrained, freeze and freeze_bn require a model of images, got mlp");
  EXPECT_EQ(error_text([] { check_options({.freeze = true}); }),
            "[train] pretrained, freeze and freeze_bn require a model of images, got mlp");
  EXPECT_EQ(error_text([] { check_options({.model = "cnn", .dropout = 0.5}); }),
            "[train] loss mse and dropout require model mlp, got cnn");
  EXPECT_EQ(error_text([] { check_options({.scaled_decode = true, .hardware_decode = true}); }),
            "[train] expected scaled_decode or hardware_decode, which decodes at full size, got both");
  EXPECT_EQ(error_text([] { check_options({.model = "cnn", .keep_head = true}); }),
            "[train] expected pretrained weights whose last layer keep_head keeps, got none");
  EXPECT_EQ(
      error_text([] { check_options({.model = "cnn", .pretrained = "auto"}); }),
      "[train] expected a file or none as pretrained for cnn, got auto: no weights are published for it");
  EXPECT_EQ(error_text([] { check_options({.model = "cnn", .pretrained = "imagenet"}); }),
            "[train] expected a model with published ImageNet weights (resnet18, resnet34, resnet50) for "
            "pretrained imagenet, got cnn");
  EXPECT_EQ(error_text([] { check_options({.model = "resnet34", .pretrained = "scenes"}); }),
            "[train] expected a model whose weights ship with Tandem (resnet18) for pretrained scenes, got "
            "resnet34");
}

TEST(TrainOptions, Defaults_DependOnTheModel) {
  EXPECT_EQ(differing_keys(default_options("mlp", {}), TrainOptions()),
            std::vector<std::string>{"lr (0.5, was 0.1)"});
  const TrainOptions cnn = default_options("cnn", {}),
                     resnet = default_options("resnet34", {.photographs = true});
  EXPECT_EQ(cnn.optimizer, "adam");
  EXPECT_EQ(cnn.batch_size, 64);
  EXPECT_TRUE(cnn.transform.empty());
  EXPECT_EQ(resnet.model, "resnet34");
  EXPECT_EQ(resnet.epochs, 25);
  EXPECT_EQ(resnet.photo_transform(), training_transform(224));
  check_options(resnet);
}

TEST(TrainOptions, FewPhotographs_GetManyEpochsOfSmallBatches) {
  for (const char* const model : {"cnn", "resnet18"})
    for (const std::int64_t images : {4, 34, 40}) {
      const TrainOptions few = default_options(model, {.photographs = true, .training_images = images});
      EXPECT_EQ(few.image_size, 64);
      EXPECT_EQ(few.batch_size, 8);
      EXPECT_EQ(few.epochs, 100);
      EXPECT_EQ(few.schedule, ScheduleKind::cosine);
      EXPECT_EQ(few.learning_rate, 1e-3);
      EXPECT_EQ(few.photo_transform().photo().crop_scale.min, 0.35);
      check_options(few);
    }
  const auto resnet = [](std::int64_t images) {
    return default_options("resnet18", {.photographs = true, .training_images = images});
  };
  EXPECT_EQ(resnet(100).batch_size, 16);
  EXPECT_EQ(resnet(320).batch_size, 32);
  EXPECT_EQ(resnet(320).epochs, 50);
  EXPECT_EQ(resnet(5000).epochs, 25);
  EXPECT_EQ(resnet(5000).image_size, 224);
  EXPECT_EQ(resnet(5000).schedule, ScheduleKind::constant);
}

TEST(TrainOptions, FewPhotographsAndPretrainedWeights_KeepTheImageSize) {
  DefaultsFor data{.photographs = true, .training_images = 34, .pretrained = true};
  const TrainOptions tuned = default_options("resnet18", data);
  EXPECT_EQ(tuned.image_size, 224);
  EXPECT_EQ(tuned.batch_size, 8);
  EXPECT_EQ(tuned.schedule, ScheduleKind::cosine);
  EXPECT_DOUBLE_EQ(tuned.learning_rate, 1e-4);
  data.frozen = true;
  EXPECT_DOUBLE_EQ(default_options("resnet18", data).learning_rate, 1e-3);
}

TEST(TrainOptions, PhotographsWhoseLastLayerIsFitted_AreCrossValidated) {
  TrainOptions options = default_options(
      "resnet18", {.photographs = true, .training_images = 34, .pretrained = true, .frozen = true});
  EXPECT_EQ(default_folds(options, 9), 0);
  EXPECT_EQ(default_folds(options, 10), 5);
  EXPECT_EQ(default_folds(options, 19), 5);
  EXPECT_EQ(default_folds(options, 20), 10);
  options.folds = 10;
  check_options(options);
  const auto folds_with = [&](const auto& change) {
    TrainOptions changed = options;
    change(changed);
    return default_folds(changed, 20);
  };
  EXPECT_EQ(folds_with([](TrainOptions& changed) { changed.epochs = 2; }), 0);
  EXPECT_EQ(folds_with([](TrainOptions& changed) { changed.fit_head = false; }), 0);
  EXPECT_EQ(folds_with([](TrainOptions& changed) { changed.validation = 8; }), 0);
  EXPECT_EQ(folds_with([](TrainOptions& changed) { changed.early_stopping = 1; }), 0);
  EXPECT_EQ(folds_with([](TrainOptions& changed) { changed.limit = 20; }), 0);
}

// The thresholds are max_images_for_fit and min_images_for_tuning.
TEST(TrainOptions, LastLayer_IsFittedForFewPhotographsAndPretrainedWeights) {
  const auto epochs_with_fit = [](const DefaultsFor& data, const char* model = "resnet18") {
    const TrainOptions options = default_options(model, data);
    check_options(options);
    return options.fit_head ? options.epochs : 0;
  };
  EXPECT_EQ(epochs_with_fit({.photographs = true, .training_images = 99, .pretrained = true}), 1);
  EXPECT_EQ(epochs_with_fit({.photographs = true, .training_images = 100, .pretrained = true}), 25);
  EXPECT_EQ(epochs_with_fit({.photographs = true, .training_images = 2000, .pretrained = true}), 25);
  EXPECT_EQ(
      epochs_with_fit({.photographs = true, .training_images = 2000, .pretrained = true, .frozen = true}), 1);
  EXPECT_EQ(epochs_with_fit({.photographs = true, .training_images = 2001, .pretrained = true}), 0);
  EXPECT_EQ(epochs_with_fit({.photographs = true, .training_images = 0, .pretrained = true}),
            0);  // not known
  EXPECT_EQ(epochs_with_fit({.photographs = true, .training_images = 40}), 0);
  EXPECT_EQ(epochs_with_fit({.photographs = false, .training_images = 40, .pretrained = true}), 0);
  EXPECT_EQ(
      epochs_with_fit({.photographs = true, .training_images = 40, .pretrained = true, .keeps_head = true}),
      0);
  EXPECT_EQ(epochs_with_fit({.photographs = true, .training_images = 40, .pretrained = true}, "cnn"), 0);
}

// The threshold is min_images_for_statistics.
TEST(TrainOptions, BatchNormStatistics_AreFrozenForFewImagesAndPretrainedWeights) {
  const auto frozen = [](std::int64_t images, bool pretrained, const char* model = "resnet18",
                         bool photographs = true) {
    return default_options(model,
                           {.photographs = photographs, .training_images = images, .pretrained = pretrained})
        .freeze_bn;
  };
  EXPECT_TRUE(frozen(1, true));
  EXPECT_TRUE(frozen(499, true));
  EXPECT_FALSE(frozen(500, true));
  EXPECT_FALSE(frozen(0, true));  // not known
  EXPECT_FALSE(frozen(34, false));
  EXPECT_TRUE(frozen(34, true, "cnn", false));
  EXPECT_FALSE(frozen(34, true, "mlp"));
}

TEST(TrainOptions, Precision_IsAutoUnlessGiven) {
  TrainOptions options;
  const TrainField& field = train_field("precision");
  EXPECT_EQ(field.get(options), TomlValue(std::string("auto")));
  field.set(options, TomlValue(std::string("tf32")));
  EXPECT_EQ(options.precision, MatmulPrecision::tf32);
  field.set(options, TomlValue(std::string("auto")));
  EXPECT_EQ(options.precision, std::nullopt);
  EXPECT_EQ(error_text([&] { field.set(options, TomlValue(std::string("fp16"))); }),
            "expected one of auto, fp32, tf32, bf16, got 'fp16'");
}

TEST(TrainOptions, Augment_AcceptsBothKindsOfRecipe) {
  TrainOptions options;
  const auto set = [&](const char* text) {
    train_field("augment").set(options, TomlValue(std::string(text)));
  };
  set(" crop 0.5 1, flip");
  EXPECT_EQ(options.transform.to_string(), "crop 0.5 1, flip 0.5");
  EXPECT_EQ(options.photo_transform().photo().flip, 0.5);
  set("none");
  options.image_size = 32;
  options.fit = PhotoFit::center;
  EXPECT_EQ(options.photo_transform(), evaluation_transform(32, PhotoFit::center));
  train_field("fit").set(options, TomlValue(std::string("letterbox")));
  EXPECT_EQ(options.photo_transform().to_string(), "letterbox");
  EXPECT_EQ(field_error("fit", "pad"), "expected one of stretch, crop, letterbox, got 'pad'");
  set("digits");
  EXPECT_EQ(error_text([&] { options.photo_transform(); }),
            "[train] expected a recipe for photographs, such as photo or 'crop, flip 0.5', got '" +
                options.transform.to_string() + "'");
  EXPECT_NE(field_error("augment", "crop 2 3").find("[augment] crop"), std::string::npos);
  EXPECT_NE(field_error("augment", "twist").find("[augment] expected none, digits, photo"),
            std::string::npos);
}

TEST(TrainOptions, DifferingKeys_NamesKeysAndValues) {
  TrainOptions now, before;
  now.epochs = 5;
  now.learning_rate = 0.25;
  before.epochs = 3;
  EXPECT_EQ(differing_keys(now, before),
            (std::vector<std::string>{"epochs (5, was 3)", "lr (0.25, was 0.1)"}));
  TomlTable old = to_table(before);  // of a version that did not have the key
  std::erase_if(old.entries, [](const TomlEntry& entry) { return entry.key == "lr"; });
  EXPECT_EQ(differing_keys(to_table(now), old),
            (std::vector<std::string>{"epochs (5, was 3)", "lr (0.25, was 0.1)"}));
}

}  // namespace
}  // namespace tandem
