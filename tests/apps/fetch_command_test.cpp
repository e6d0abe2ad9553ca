// tandem fetch without a network: error messages for the given files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tandem/data/dataset_registry.h"
#include "tests/apps/program.h"

namespace tandem {
namespace {

class FetchCommand : public testing::Test {
 protected:
  FetchCommand() {
    setenv("TANDEM_CACHE", (cache_ / "c").c_str(), 1);
    std::filesystem::create_directory(folder_ / "given");
  }
  ~FetchCommand() override { unsetenv("TANDEM_CACHE"); }

  void expect_failure(int status, const std::vector<std::string>& words, const std::string& line) {
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, status) << line;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "tandem: error: " + line + "\n");
  }

  TempFolder folder_, cache_;
};

TEST_F(FetchCommand, Usage) {
  expect_failure(2, {"fetch"}, "DATA is required (see tandem fetch --help)");
  expect_failure(2, {"fetch", "cifar"},
                 "DATA: expected one of " + fetchable_names() +
                     ", got 'cifar'; did you mean 'cifar10'? (see tandem fetch --help)");
}

TEST_F(FetchCommand, WrongFiles_AreErrors) {
  expect_failure(1, {"fetch", "mnist", "--from", "none"}, "[fetch] none: no such file or folder");
  expect_failure(1, {"fetch", "mnist", "--from", "given"},
                 "[fetch] given: does not contain train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                 "t10k-images-idx3-ubyte, "
                 "t10k-labels-idx1-ubyte");
  put_bytes(folder_ / "given/train-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x01\x05", 9));
  expect_failure(
      1, {"fetch", "fashion-mnist", "--from", "given"},
      "[fetch] given/train-labels-idx1-ubyte: expected the train-labels-idx1-ubyte of fashion-mnist with "
      "SHA-256 bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9, got "
      "3afb77842a393f5177431fbff622da97dcf83b0818befe62777f51c37eba4401: the file has only 9 of 60008 bytes");
  EXPECT_FALSE(std::filesystem::exists(cache_ / "c/fashion-mnist/train-labels-idx1-ubyte"));
}

TEST_F(FetchCommand, WeightsWithWrongHash_AreRejected) {
  put_bytes(folder_ / "given/resnet18-f37072fd.pth", "other weights");
  expect_failure(1, {"fetch", "resnet18", "--from", "given"},
                 "[fetch] given/resnet18-f37072fd.pth: expected the resnet18-f37072fd.pth of resnet18 with "
                 "SHA-256 f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec, got "
                 "53959fa102f31e51d8d1ee12fe89c2fd7cd556dbaf2c6102046d195a504850a0: the file has only 13 of "
                 "46830571 bytes");
  EXPECT_FALSE(std::filesystem::exists(cache_ / "c/weights/resnet18-f37072fd.pth"));
}

TEST_F(FetchCommand, UnwritableCache_IsAnError) {
  put_bytes(cache_ / "c", "a file");
  expect_failure(1, {"fetch", "mnist", "--from", "given"},
                 "[fetch] cannot create the folder " + (cache_ / "c/mnist").string() + ": Not a directory");
}

}  // namespace
}  // namespace tandem
