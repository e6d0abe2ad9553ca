// Runs of the small CNN on a folder of tiny photographs.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tandem/train/trainer.h"
#include "tests/train/photo_folder.h"

namespace tandem {

// One epoch, which fits the last layer, on 2 · `photos_per_class` photographs in folder_ / "photos".
class PhotoRunCase : public testing::Test {
 protected:
  explicit PhotoRunCase(unsigned photos_per_class = 9) {
    write_photos(folder_ / "photos", photos_per_class);
    options_ = default_options("cnn", {.photographs = true});
    options_.data = (folder_ / "photos").string();
    options_.image_size = 16;
    options_.batch_size = 4;
    options_.workers = 0;
    options_.device = cpu_device;
    options_.epochs = 1;
    options_.fit_head = true;
    options_.run_folder = folder_ / "run";
  }

  TempFolder folder_;
  TrainOptions options_;
};

}  // namespace tandem
