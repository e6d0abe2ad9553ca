// An application that classifies an image it has in memory. It trains a small model first, to have one.
#include <tandem/tandem.h>

#include <iostream>
#include <vector>

namespace td = tandem;

int main() {
  const auto data = td::digits({.train = 2000, .test = 100});
  td::Sequential model(td::Flatten(), td::Linear(784, 64), td::ReLU(), td::Linear(64, 10));
  const td::TrainResult trained =
      td::fit(model, data.train, data.test,
              {.epochs = 5, .batch_size = 20, .learning_rate = 0.1, .run_folder = "predict_image_run"});

  td::Classifier classifier(trained.folder / "best.safetensors",
                            model);  // a registered model needs no `model`
  int right = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const td::Image digit = td::to_rgb(data.test.image(i));  // any source of bytes: a camera, a decoder
    const td::Prediction answer = classifier(digit.pixels.data(), digit.width, digit.height);
    right += answer.class_name == data.test.classes()[static_cast<std::size_t>(data.test.label(i))];
    if (i < 3) std::cout << "image " << i << ": " << answer.class_name << " (" << answer.probability << ")\n";
  }
  std::cout << right << " of 100 correct\n";
  return right > 70 ? 0 : 1;
}
