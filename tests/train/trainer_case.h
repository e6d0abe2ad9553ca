// A small run of train() that uses everything a checkpoint must contain.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tandem/train/trainer.h"
#include "tests/train/small_run.h"

namespace tandem {

class TrainerCase : public testing::Test {
 protected:
  TrainerCase() {
    write_small_digits(folder_ / "data");
    // Uses everything that a checkpoint must contain.
    options_ = small_options();
    options_.dropout = 0.2;
    options_.learning_rate = 0.2;
    options_.momentum = 0.9;
    options_.nesterov = true;
    options_.weight_decay = 1e-4;
    options_.schedule = ScheduleKind::one_cycle;
  }

  TrainOptions small_options() const {
    TrainOptions options;
    options.data = (folder_ / "data").string();
    options.layers = {784, 16, 10};
    options.epochs = 4;
    options.batch_size = 7;
    options.learning_rate = 0.5;
    options.device = cpu_device;
    return options;
  }
  TrainResult run(const std::string& name, bool resume = false, const FitCallbacks& callbacks = {},
                  double save_every = 60) {
    options_.run_folder = folder_ / name;
    options_.resume = resume;
    options_.save_every_seconds = save_every;
    return train(options_, callbacks);
  }
  std::string run_error(const std::string& name, bool resume = false) {
    return error_text([&] { run(name, resume); });
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TempFolder folder_;
  TrainOptions options_;
};

}  // namespace tandem
