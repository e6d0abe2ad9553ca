// Transfer learning on a folder of photographs: ResNet-18 with a new last layer, everything else frozen.
//   fine_tuning [FOLDER [WEIGHTS]]   FOLDER/train and FOLDER/test with one folder per class; WEIGHTS: .pth or .safetensors
// Without arguments a few plates are rendered and the weights are random, so that it runs anywhere.
#include <tandem/tandem.h>

#include <iostream>

namespace td = tandem;

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : "plates";
  if (argc <= 1 && !std::filesystem::exists(folder)) td::write_plates(folder, {.train = 8, .test = 8});

  const td::PhotoDataset train = td::image_folder(folder / "train");
  const td::PhotoDataset validation = td::image_folder(folder / "test", {.classes = train.classes()});
  td::ResNet model({.depth = 18, .classes = 1000, .seed = 1});
  if (argc > 2) model.load_state_dict(td::read_weights(argv[2]).tensors);
  model.freeze();
  model.set_head(td::Linear(model.feature_count(), static_cast<std::int64_t>(train.classes().size())));

  const td::TrainResult result = td::fit(model, train, validation,
                                         {.epochs = 2,
                                          .batch_size = 8,
                                          .learning_rate = 0.01,
                                          .transform = td::training_transform(64),
                                          .norm = td::imagenet_norm,  // what published weights expect
                                          .run_folder = "fine_tuning_run"});
  std::cout << "validation accuracy " << result.test_accuracy << " after " << result.epochs.size()
            << " epochs; model in " << (result.folder / "best.safetensors") << '\n';
}
