// Classifier: the same bits as predict, from any thread, and clear errors.
#include "tandem/train/classifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tandem/image/encode_png.h"
#include "tandem/train/predict.h"
#include "tests/files/test_files.h"
#include "tests/train/classifier_models.h"

namespace tandem {
namespace {

std::vector<Device> devices() {
  std::vector<Device> all{cpu_device};
  if (cuda_device_count() > 0) all.push_back(cuda_device());
  return all;
}

class ClassifierOf : public testing::TestWithParam<std::string> {};

TEST_P(ClassifierOf, ImagesInMemory_GiveTheBitsOfPredict) {
  const TempFolder folder;
  const std::filesystem::path file = folder / "model.safetensors";
  save_random_model(file, GetParam());
  std::vector<Image> images;
  std::vector<std::string> paths;
  for (const auto& [height, width, channels] :
       {std::tuple{32, 32, 3}, {28, 28, 1}, {61, 47, 3}, {40, 300, 3}, {333, 36, 1}}) {
    images.push_back(noise_image(height, width, channels, static_cast<std::uint32_t>(height)));
    paths.push_back((folder / (std::to_string(paths.size()) + ".png")).string());
    save_png(paths.back(), images.back());
  }
  for (const Device device : devices()) {
    Model model = load_model(file);
    model.module->to(device);
    const std::vector<Prediction> expected = predict_paths(model, paths);
    const Classifier classifier(file, device);
    const std::vector<Prediction> batch = classifier(std::vector<ImageView>(images.begin(), images.end()));
    ASSERT_EQ(batch.size(), images.size());
    for (std::size_t i = 0; i < images.size(); ++i) {
      ASSERT_EQ(expected[i].error, "");
      EXPECT_EQ(batch[i].chosen, expected[i].chosen);
      EXPECT_EQ(batch[i].class_name, expected[i].class_name);
      const Prediction one = classifier(images[i]);
      if (device.is_cuda()) {  // whose libraries choose other algorithms for other batch sizes
        for (std::size_t c = 0; c < 3; ++c)
          EXPECT_NEAR(one.probabilities[c], expected[i].probabilities[c], 1e-3);
        continue;
      }
      EXPECT_EQ(batch[i].probabilities, expected[i].probabilities);
      EXPECT_EQ(one.probabilities, expected[i].probabilities);
      EXPECT_EQ(one.probability, expected[i].probability);
    }
    EXPECT_NE(batch[0].probabilities, batch[2].probabilities);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ClassifierOf,
                         testing::Values("mlp", "lenet", "cnn", "resnet18", "mobilenet_v3_small",
                                         "efficientnet_b0"),
                         [](const auto& row) { return row.param; });

TEST(Classifier, Bf16OnTheCpu_IsCloseToF32) {
  const TempFolder folder;
  for (const std::string model : {"mlp", "lenet", "cnn", "resnet18"}) {
    SCOPED_TRACE(model);
    save_random_model(folder / "m", model);
    const Classifier exact(folder / "m"), fast(folder / "m", {.precision = MatmulPrecision::bf16});
    std::vector<Image> images;
    for (std::uint32_t i = 0; i < 3; ++i) images.push_back(noise_image(40, 50, 3, i));
    const std::vector<Prediction> answers = fast(std::vector<ImageView>(images.begin(), images.end()));
    for (std::size_t i = 0; i < images.size(); ++i) {
      const Prediction expected = exact(images[i]);
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(answers[i].probabilities[c], expected.probabilities[c], 5e-2);
      EXPECT_EQ(fast(images[i]).probabilities, answers[i].probabilities);
      // Perceptrons have f32 inputs.
      EXPECT_EQ(answers[i].probabilities == expected.probabilities, model == "mlp");
    }
  }
}

TEST(Classifier, Captured_FollowsItsInput) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const TempFolder folder;
  save_random_model(folder / "m", "resnet18");
  const Classifier exact(folder / "m");
  for (const auto& [precision, tolerance] : {std::pair{MatmulPrecision::fp32, 1e-4},
                                             {MatmulPrecision::tf32, 1e-2},
                                             {MatmulPrecision::bf16, 5e-2}}) {
    const Classifier classifier(folder / "m", {.device = cuda_device(), .precision = precision});
    for (std::uint32_t i = 0; i < 8; ++i) {  // the first calls are eager, the others replay
      const Image image = noise_image(40, 50, 3, i);
      const Prediction answer = classifier(image), expected = exact(image);
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(answer.probabilities[c], expected.probabilities[c], tolerance);
    }
  }
}

TEST(Classifier, Pixels_AreReadInEveryForm) {
  const TempFolder folder;
  save_random_model(folder / "m", "cnn");
  const Classifier classifier(folder / "m");
  const Image image = noise_image(30, 41, 3, 5);
  const std::vector<float> expected = classifier(image).probabilities;
  EXPECT_EQ(classifier(image.pixels.data(), 41, 30).probabilities, expected);
  std::vector<std::uint8_t> padded(30 * 200, 77), rgba(30 * 41 * 4, 99);
  for (std::int64_t y = 0; y < 30; ++y)
    for (std::int64_t x = 0; x < 41; ++x)
      for (int c = 0; c < 3; ++c) {
        padded[static_cast<std::size_t>(y * 200 + x * 3 + c)] = image.at(y, x, c);
        rgba[static_cast<std::size_t>((y * 41 + x) * 4 + c)] = image.at(y, x, c);
      }
  EXPECT_EQ(classifier(padded.data(), 41, 30, 200).probabilities, expected);
  EXPECT_EQ(classifier(ImageView(rgba.data(), 30, 41, 4, 41 * 4)).probabilities, expected);
  const Image gray = noise_image(30, 41, 1, 5);
  EXPECT_EQ(classifier(gray).probabilities, classifier(to_rgb(gray)).probabilities);
  EXPECT_TRUE(classifier(std::span<const ImageView>()).empty());
}

TEST(Classifier, BadImages_GiveOneClearLine) {
  const TempFolder folder;
  save_random_model(folder / "m", "mlp");
  const Classifier classifier(folder / "m");
  const std::vector<std::uint8_t> rgb(300);
  const auto text = [&](const std::uint8_t* pixels, std::int64_t width, std::int64_t height,
                        std::int64_t stride = 0) {
    return error_text([&] { classifier(pixels, width, height, stride); });
  };
  EXPECT_EQ(text(nullptr, 10, 10), "[classifier] expected pixels, got a null pointer");
  EXPECT_EQ(text(rgb.data(), 0, 10), "[classifier] expected a width from 1 to 179000000, got 0");
  EXPECT_EQ(text(rgb.data(), INT64_MAX, 10),
            "[classifier] expected a width from 1 to 179000000, got 9223372036854775807");
  EXPECT_EQ(text(rgb.data(), 10, 0),
            "[classifier] expected a width and height of at least 1 and at most 179000000 pixels, got 10x0");
  EXPECT_EQ(text(rgb.data(), 10, -3),
            "[classifier] expected a width and height of at least 1 and at most 179000000 pixels, got 10x-3");
  EXPECT_EQ(text(rgb.data(), 1 << 20, 1 << 20),
            "[classifier] expected a width and height of at least 1 and at most 179000000 pixels, got "
            "1048576x1048576");
  EXPECT_EQ(text(rgb.data(), 10, 10, -30), "[classifier] expected rows at least 30 bytes apart, got -30");
  EXPECT_EQ(text(rgb.data(), 10, 10, 29), "[classifier] expected rows at least 30 bytes apart, got 29");
  EXPECT_EQ(text(rgb.data(), 10, 10, INT64_MAX),
            "[classifier] expected rows at least 30 bytes apart, got 9223372036854775807");
  EXPECT_EQ(error_text([&] { classifier(ImageView(rgb.data(), 10, 10, 2, 20)); }),
            "[classifier] expected 1, 3 or 4 channels, got 2");
  std::vector<Prediction> answers(2);
  const ImageView view(rgb.data(), 10, 10, 3, 30);
  EXPECT_EQ(error_text([&] {
              classifier.classify({&view, 1}, answers);
            }),
            "[classifier] expected 1 answers, one per image, got 2");
  EXPECT_EQ(error_text([&] { Classifier bad(folder / "m", {.precision = MatmulPrecision::tf32}); }),
            "[classifier] expected precision fp32 or bf16 on the CPU, got tf32");
  EXPECT_NE(classifier(rgb.data(), 10, 10).class_name, "");  // still works
}

TEST(Classifier, EightThreads_ShareOneModel) {
  const TempFolder folder;
  for (const std::string model : {"mlp", "cnn"}) {
    save_random_model(folder / "m", model);
    const Classifier classifier(folder / "m");
    std::vector<Image> images;
    std::vector<Prediction> expected;
    for (std::uint32_t i = 0; i < 8; ++i) {
      images.push_back(noise_image(20 + i, 30 + 3 * i, i % 2 ? 1 : 3, i));
      expected.push_back(classifier(images.back()));
    }
    const std::vector<ImageView> views(images.begin(), images.end());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        std::vector<Prediction> answers(8);
        for (std::size_t i = 0; i < 8; ++i) {
          const std::size_t at = (t + i) % 8;
          wrong += classifier(images[at]).probabilities != expected[at].probabilities;
          classifier.classify(views, answers);
          wrong += answers[at].probabilities != expected[at].probabilities;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
  }
}

// A program that trains may replace the file at any moment, and not every program does it at once.
TEST(Classifier, FileThatChangesWhileItIsRead_IsAnErrorOrAModel) {
  const TempFolder folder;
  save_random_model(folder / "a", "mlp", 1);
  save_random_model(folder / "b", "mlp", 2);
  const std::string bytes[2] = {get_bytes(folder / "a"), get_bytes(folder / "b")};
  const Image image = noise_image(28, 28, 1, 1);
  const std::vector<float> answers[2] = {Classifier(folder / "a")(image).probabilities,
                                         Classifier(folder / "b")(image).probabilities};
  EXPECT_NE(answers[0], answers[1]);
  const std::filesystem::path file = folder / "m";
  put_bytes(file, bytes[0]);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::size_t i = 0; !done; ++i) {
      const std::string& whole = bytes[i % 2];
      std::ofstream(file, std::ios::binary).write(whole.data(), std::ssize(whole) / (1 + i % 3));
    }
  });
  for (int i = 0; i < 200; ++i) {
    try {
      const Classifier classifier(file);
      EXPECT_EQ(classifier(image).probabilities.size(), 3u);
    } catch (const Error&) {
    }
  }
  done = true;
  writer.join();
  const Classifier first(folder / "a");
  put_bytes(folder / "a", "");  // what is loaded stays
  EXPECT_EQ(first(image).probabilities, answers[0]);
  EXPECT_NE(error_text([&] { Classifier empty(folder / "a"); }), "");
}

}  // namespace
}  // namespace tandem
