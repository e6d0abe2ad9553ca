// Commands for a model that was trained on tiny photographs.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/train/photo_folder.h"

namespace tandem {

// Runs in folder_, which has 14 photographs in "photos" and a run of one epoch in "r".
class PhotoProgramCase : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  PhotoProgramCase() {
    write_photos(folder_ / "photos", 7);
    run({"train", "photos", "--model", "cnn", "--image-size", "16", "--epochs", "1", "--out", "r", "--device",
         "cpu", "--batch-size", "4"});
  }

  ProgramResult run(const Words& words) {
    ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  void expect_failure(int status, const Words& words, const std::string& error) {
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, status);
    EXPECT_EQ(result.err, "tandem: error: " + error + "\n");
  }

  TempFolder folder_;
};

}  // namespace tandem
