// Invalid input of every kind: one line on standard error, the right exit status, and no partial output.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "tandem/data/dataset_registry.h"
#include "tandem/device/device.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/example_photo.h"
#include "tandem/nn/model_registry.h"
#include "tandem/optim/optimizer_registry.h"
#include "tandem/study/studies.h"
#include "tests/apps/program.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

class BadInput : public testing::Test {
 protected:
  BadInput() { save_png(folder_ / "photo.png", example_photo(20, 30)); }

  // Expects no output, no new file, that status and that line.
  void expect_failure(int status, const Words& words, const std::string& line) {
    const std::size_t files = folder_.count();
    const ProgramResult result = run_program(words, folder_.path());
    EXPECT_EQ(result.status, status) << line;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "tandem: error: " + line + "\n");
    EXPECT_EQ(folder_.count(), files) << line;
  }
  void expect_usage(const std::string& command, Words words, const std::string& line) {
    words.insert(words.begin(), command);
    expect_failure(2, words, line + " (see tandem " + command + " --help)");
  }
  void expect_bad_photo(const std::string& photo, const std::string& problem) {
    expect_failure(1, {"filter", photo, "--filter", "ring", "-o", "out.png"},
                   "[decode] " + photo + ": " + problem);
  }

  TempFolder folder_;
};

// A PNG with a valid header of that size and almost no data.
std::string png_header(std::uint32_t width, std::uint32_t height) {
  const auto big_endian = [](std::uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
    return bytes;
  };
  const std::string header =
      "IHDR" + big_endian(width) + big_endian(height) + std::string("\x08\x02\0\0\0", 5);
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : header) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
  }
  return "\x89PNG\r\n\x1a\n" + big_endian(13) + header + big_endian(~crc) + big_endian(64) + "IDAT" +
         std::string(64, '\0');
}

TEST_F(BadInput, Commands) {
  expect_failure(2, {},
                 "expected one of the commands augment, check, compare, convert, devices, eval, explain, "
                 "export, fetch, filter, grade, "
                 "inspect, "
                 "new, pack, plates, predict, pretrain, probe, quantize, serve, split, "
                 "study, submit, train, verify-determinism, watch, got none (see tandem --help)");
  expect_failure(2, {"bake"},
                 "expected one of the commands augment, check, compare, convert, devices, eval, explain, "
                 "export, fetch, filter, grade, "
                 "inspect, "
                 "new, pack, plates, predict, pretrain, probe, quantize, serve, split, "
                 "study, submit, train, verify-determinism, watch, got 'bake' (see tandem --help)");
  expect_usage("devices", {"extra"}, "unexpected argument 'extra'");
}

TEST_F(BadInput, MisspelledNames_GetASuggestion) {
  expect_failure(2, {"fliter"}, "unknown command 'fliter'; did you mean 'filter'? (see tandem --help)");
  expect_failure(2, {"--verison"}, "unknown flag --verison; did you mean --version? (see tandem --help)");
  expect_usage("train", {"digits", "--epoch", "3"}, "unknown flag --epoch; did you mean --epochs?");
  expect_usage("train", {"digits", "--batch_size=3"},
               "unknown flag --batch_size; did you mean --batch-size?");
  expect_usage("train", {"a\xFF"}, "DATA: expected text in UTF-8, got 'a\uFFFD'");
  expect_usage("predict", {"--shet", "x.png"}, "unknown flag --shet; did you mean --sheet?");
  expect_usage("study", {"max", "--fast"}, "unknown flag --fast");
  expect_usage("train", {"digits", "--model", "resnet-18"},
               "--model: expected one of " + models().list() + ", got 'resnet-18'; did you mean 'resnet18'?");
  expect_usage("train", {"digits", "--optimizer", "adma"},
               "--optimizer: expected one of " + optimizers().list() + ", got 'adma'; did you mean 'adam'?");
  expect_usage("train", {"digits", "--schedule", "onecycle"},
               "--schedule: expected one of constant, step, cosine, one-cycle, triangular, got 'onecycle'; "
               "did you mean 'one-cycle'?");
  expect_usage(
      "fetch", {"fashion"},
      "DATA: expected one of " + fetchable_names() + ", got 'fashion'; did you mean 'fashion-mnist'?");
  expect_usage(
      "study", {"correlate"},
      "NAME: expected one of " + studies().list() + ", all, got 'correlate'; did you mean 'correlation'?");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--filter", "sobel"},
               "--filter: expected one of sobel1, sobel2, sobel3, sobel4, ring, all, got 'sobel'; "
               "did you mean 'sobel1'?");
  expect_failure(1, {"train", "fasion-mnist"},
                 "[train] expected one of " + datasets().list() +
                     " or a folder with idx files or photographs, got 'fasion-mnist'; did you mean "
                     "'fashion-mnist'?");
  expect_usage("train", {"digits", "--threshold", "high"},
               "--threshold: expected none, auto or a number from 0 to 1, got 'high'");
  expect_failure(1, {"train", "digits", "--limit", "50", "--loss", "mse", "--calibrate"},
                 "[train] calibrate requires a loss of logits, got mse");
  expect_usage("predict", {"model", "photo.png", "--tta", "13"},
               "--tta: expected none, flip or a number from 2 to 12, got '13'");
  expect_usage("predict", {"model", "photo.png", "--precision", "fp8"},
               "--precision: expected one of fp32, tf32, bf16, got 'fp8'");
  expect_failure(1, {"eval", "model", "--precision", "tf32"},
                 "[eval] expected precision fp32 or bf16 on the CPU, got tf32");
  expect_usage("explain", {"model", "photo.png", "-o", "out.png", "--precision", "fp8"},
               "--precision: expected one of fp32, tf32, bf16, got 'fp8'");
  expect_failure(1, {"explain", "model", "photo.png", "-o", "out.png", "--precision", "tf32"},
                 "[explain] expected precision fp32 or bf16 on the CPU, got tf32");
  expect_usage("serve", {"model", "--precision", "half"},
               "--precision: expected one of fp32, tf32, bf16, got 'half'");
  expect_failure(1, {"serve", "model", "--listen", "unix:none/s", "--device", "cpu", "--precision", "tf32"},
                 "[serve] expected precision fp32 or bf16 on the CPU, got tf32");
  expect_usage("eval", {"model", "--tta", "mirror"},
               "--tta: expected none, flip or a number from 2 to 12, got 'mirror'");
  expect_usage("train", {"digits", "--folds", "many"},
               "--folds: expected a whole number from 0 to 10000, got 'many'");
  expect_failure(1, {"train", "digits", "--folds", "1"},
                 "[train] expected two folds or more, or 0 for no cross-validation, got 1");
  expect_failure(1, {"train", "digits", "--limit", "50", "--folds", "30"},
                 "[folds] expected at most 5 folds, the images of class '0', got 30");
  expect_failure(
      1, {"train", "digits", "--folds", "5", "--validation", "100"},
      "[train] expected no validation count with folds, which hold out every image in turn, got 100");
  expect_failure(1, {"train", "digits", "--scaled-decode", "--hardware-decode"},
                 "[train] expected scaled_decode or hardware_decode, which decodes at full size, got both");
  put_bytes(folder_ / "run.toml", "lr = 1\nepoch = 3\n");
  expect_failure(1, {"train", "digits", "--config", "run.toml"},
                 "[config] run.toml:2: unknown key 'epoch'; did you mean 'epochs'?");
}

TEST_F(BadInput, Augment) {
  expect_usage("augment", {"-o", "out.png"}, "DATA is required");
  expect_usage("augment", {"photo.png"}, "--output is required");
  expect_usage("augment", {"photo.png", "-o", "out.png", "--count", "0"},
               "--count: expected a whole number from 1 to 1024, got '0'");
  expect_usage("augment", {"photo.png", "-o", "out.png", "--augment", "turn 1 2"},
               "--augment: expected none, digits, photo, or operations: rotate, shift, skew, noise, zoom, "
               "blur, crop, flip, or crop, flip, "
               "resize, center, letterbox, vertical_flip, rotation, perspective, jitter, randaugment, "
               "trivial_augment, erase, bilinear, bicubic; got 'turn 1 2' (--with FILE adds "
               "one of your own)");
  expect_usage("augment", {"photo.png", "-o", "out.png", "--augment", "rotate 5 -5"},
               "--augment: rotate: expected the lower bound first, got 5 to -5");
  put_bytes(folder_ / "text.png", "no picture");
  expect_failure(
      1, {"augment", "photo.png", "text.png", "-o", "out.png"},
      "[decode] text.png: not an image of a known format (JPEG, PNG, WebP, BMP, PBM, PGM, PPM, TIFF, HEIC)");
  expect_failure(1, {"augment", "none.png", "-o", "out.png"}, "[decode] none.png: no such file");
  expect_failure(1, {"augment", "photo.png", "-o", "photo.png/out.png"},
                 "[augment] cannot write photo.png/out.png: Not a directory");
  Words many(12, "photo.png");
  many.insert(many.begin(), "augment");
  many.insert(many.end(), {"--count", "100", "-o", "out.png"});
  expect_failure(
      1, many,
      "[augment] expected at most 1024 images on a sheet, got 1212 (12 files, 100 variants of each)");
}

TEST_F(BadInput, VerifyDeterminism) {
  const std::string command = "verify-determinism";
  expect_usage(command, {}, "DATA is required");
  expect_usage(command, {"digits", "--workers", "0"},
               "--workers: expected a whole number from 1 to 1024, got '0'");
  expect_usage(command, {"digits", "--ranks", "2,0"},
               "--ranks: expected a whole number from 1 to 256, got '0'");
  expect_failure(1, {command, "digits", "--limit", "200", "--batch-size", "4", "--ranks", "5"},
                 "[verify-determinism] expected at most 4 ranks, one per image of a batch, got 5");
  expect_failure(1, {command, "digits", "--limit", "200", "--ranks", "1,4", "--shards", "2"},
                 "[verify-determinism] expected at most 2 ranks, one per shard, got 4");
  expect_usage(command, {"digits", "--augment", "noise 0 nan"},
               "--augment: noise: expected a fraction of full scale from 0 to 1, got 0 to nan");
  expect_failure(1, {command, "nowhere"},
                 "[train] expected one of " + datasets().list() +
                     " or a folder with idx files or photographs, got 'nowhere'");
}

TEST_F(BadInput, UsageOfFilter) {
  expect_usage("filter", {}, "PHOTO is required");
  expect_usage("filter", {"photo.png", "--filter", "ring"}, "--output is required");
  expect_usage("filter", {"photo.png", "-o", "out.png"}, "--filter or --kernel is required");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--filter", "ring", "--kernel", "1"},
               "--filter excludes --kernel");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--filter", "ring", "--gradient"},
               "--gradient requires --kernel");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--filter", "sobel9"},
               "--filter: expected one of sobel1, sobel2, sobel3, sobel4, ring, all, got 'sobel9'; did you "
               "mean 'sobel1'?");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--kernel", "1 2; 3"},
               "--kernel: expected kernel rows of equal length, got 2 and 1 numbers");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--kernel", "1 a"},
               "--kernel: expected numbers in the kernel, got 'a'");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--kernel", ""},
               "--kernel: expected a kernel such as \"1 0 -1; 2 0 -2; 1 0 -1\", got ''");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--filter", "ring", "--device", "tpu"},
               "--device: expected a device such as cpu, cuda or cuda:1, got 'tpu'");
  expect_usage("filter", {"photo.png", "-o", "out.png", "--filter", "ring", "--max-pixels", "0"},
               "--max-pixels: expected a whole number from 1 to 1099511627776, got '0'");
}

TEST_F(BadInput, UsageOfStudy) {
  expect_usage("study", {}, "NAME is required");
  expect_usage("study", {"sum"},
               "NAME: expected one of max, xxt, correlation, linear, devices, workers, augment, plates, "
               "cluster, all, got 'sum'");
  expect_usage("study", {"max", "--cases", "3x3"},
               "--cases: expected a case such as \"1000x1000 i32\", got \"3x3\"");
  expect_usage("study", {"xxt", "--cases", "9x9 f32,3x3 i32"},
               "--cases: expected one of the types f32, tf32, f64, got i32");
  expect_usage("study", {"all", "--cases", "3x3 f32"}, "--cases excludes the study all");
  expect_usage("study", {"devices", "--cases", "784,8,10 batch 16,784,8,10"},
               "--cases: expected a case such as \"784,200,10 batch 16\", got \"784,8,10\"");
  expect_usage("study", {"devices", "--cases", "700,8,10 batch 16"},
               "--cases: expected layers from 784 pixels to 10 classes, got 700,8,10");
  expect_usage("study", {"cluster", "--case", "resnet18 batch 8"},
               "--cases: expected a case such as \"resnet18 224 batch 32\", got \"resnet18 batch 8\"");
  expect_usage("study", {"cluster", "--ranks", "1,0"},
               "--ranks: expected a whole number from 1 to 256, got '0'");
  expect_usage("study", {"cluster", "--simulate", "much"},
               "--simulate: expected nodes and the ranks of each, such as 8x128, got 'much'");
  expect_usage("study", {"max", "--ranks", "2"}, "--ranks excludes the study max");
  expect_usage("study", {"devices", "--versions", "cuda"}, "--versions excludes the study devices");
  for (const char* const study : {"augment", "plates"})
    expect_usage("study", {study, "--threads", "2"}, "--threads excludes the study " + std::string(study));
  expect_usage("study", {"devices", "--threads", "2", "--device", "gpu"}, "--threads excludes --device cuda");
  expect_usage("study", {"devices", "--layers", "784,10"}, "--layers excludes the study devices");
  expect_usage("study", {"xxt", "--kernels", "3"}, "--kernels excludes the study xxt");
  expect_usage("study", {"correlation", "--kernels", "3,0"},
               "--kernels: expected a kernel size such as 5 or 3x5, at most 65536, got '0'");
  expect_usage("study", {"correlation", "--kernels", "3", "--cases", "9x9 f32 3x3"},
               "--cases: expected a case such as \"1024x1024 f32\", got \"9x9 f32 3x3\"");
  expect_usage("study", {"augment", "--layers", "784"},
               "--layers: expected two or more sizes from 1 to 16777216, such as 784,200,10, got '784'");
  expect_usage("study", {"augment", "--limit", "0"},
               "--limit: expected a whole number from 1 to 1000000, got '0'");
  expect_usage("study", {"workers", "--versions", "cuda"}, "--versions excludes the study workers");
  expect_usage("study", {"workers", "--seeds", "2"}, "--seeds excludes the study workers");
  expect_usage("study", {"max", "--data", "mnist"}, "--data excludes the study max");
  expect_usage("study", {"augment", "--epochs", "0"},
               "--epochs: expected a whole number from 1 to 100000, got '0'");
  expect_usage("study", {"augment", "--cases", "3x3 f32"}, "--cases: expected no cases, got \"3x3 f32\"");
  expect_usage("study", {"max", "--versions", "parallel,gpu"},
               "--versions: expected a version (reference, simd, parallel, cuda-simple or cuda), got 'gpu'");
  expect_usage("study", {"max", "--threads", "1,0"},
               "--threads: expected a whole number from 1 to 4096, got '0'");
  expect_usage("study", {"max", "--time-limit", "-1"},
               "--time-limit: expected seconds from 0 to 1e9, got '-1'");
  expect_usage("study", {"max", "--json", "-", "--html", "-"}, "--json - excludes --html -");
  expect_usage("study", {"max", "--seed", "-1"},
               "--seed: expected a whole number from 0 to 9223372036854775807, got '-1'");
  expect_usage("study", {"max", "--device", "cuda:x"},
               "--device: expected a device such as cpu, cuda or cuda:1, got 'cuda:x'");
}

TEST_F(BadInput, UnreadablePhotos_AreErrors) {
  expect_bad_photo("missing.jpg", "no such file");
  expect_bad_photo(".", "expected an image file, got a folder");
  put_bytes(folder_ / "empty.png", "");
  expect_bad_photo("empty.png", "the file is empty");
  put_bytes(folder_ / "text.jpg", "This is no photograph.");
  expect_bad_photo("text.jpg",
                   "not an image of a known format (JPEG, PNG, WebP, BMP, PBM, PGM, PPM, TIFF, HEIC)");
  put_bytes(folder_ / "huge.png", png_header(100000, 100000));
  expect_bad_photo("huge.png",
                   "100000x100000 is 10000000000 pixels, the limit is 179000000 (--max-pixels raises it)");
  expect_failure(1, {"filter", "photo.png", "--filter", "ring", "-o", "out.png", "--max-pixels", "599"},
                 "[decode] photo.png: 30x20 is 600 pixels, the limit is 599 (--max-pixels raises it)");
}

TEST_F(BadInput, TruncatedPhotos_AreErrors) {
  for (const std::string name : {"png_rgb.png", "jpeg_444.jpg", "bmp_24.bmp", "pnm_rgb.ppm"}) {
    std::string bytes = text_of(golden_folder() / name);
    put_bytes(folder_ / name, bytes.substr(0, bytes.size() / 2));
    const std::size_t files = folder_.count();
    const ProgramResult result =
        run_program({"filter", name, "--filter", "ring", "-o", "out.png"}, folder_.path());
    EXPECT_EQ(result.status, 1) << name;
    EXPECT_EQ(result.err.rfind("tandem: error: [decode] " + name + ": ", 0), 0u) << result.err;
    EXPECT_NE(result.err.find("truncated"), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(folder_.count(), files);
  }
}

TEST_F(BadInput, Error_IsOneLineForAnyFileName) {
  expect_failure(1, {"filter", "a\nb\x1b[31m", "--filter", "ring", "-o", "out.png"},
                 "[decode] a b [31m: no such file");
}

TEST_F(BadInput, UnwritableOutputs_FailBeforeTheWork) {
  expect_failure(1, {"filter", "missing.jpg", "--filter", "ring", "-o", "no/out.png"},
                 "[filter] cannot write no/out.png: No such file or directory");
  expect_failure(1, {"filter", "missing.jpg", "--filter", "ring", "-o", "."},
                 "[filter] cannot write .: Is a directory");
  expect_failure(1, {"filter", "photo.png", "--filter", "ring", "-o", ""},
                 "[filter] expected a file name to write to, got none");
  for (const char* flag : {"--json", "--html"})  // "Running study …" would be on standard error
    expect_failure(1, {"study", "all", flag, "photo.png/report"},
                   "[study] cannot write photo.png/report: Not a directory");
}

TEST_F(BadInput, FullDisk_KeepsTheOldFile) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer itself cannot start where files may not grow";
#endif
  put_bytes(folder_ / "out.png", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100, before.rlim_max};  // inherited by the program, like the ignored signal
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const int err = open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const int status = run_program({"filter", "photo.png", "--filter", "ring", "-o", "out.png"}, folder_.path(),
                                 err, err, false);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  close(err);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(text_of(folder_ / "out.png"), "old");
  EXPECT_EQ(folder_.count(), 2u);
}

TEST_F(BadInput, MissingGpu_IsAnError) {
  const int count = cuda_device_count();
  const std::string name = "cuda:" + std::to_string(count);
  const std::string line =
      count == 0 ? "device cuda:0 is not available: " + why_no_cuda() + "; use cpu instead"
                 : "device " + name + " is not available: this machine has " + std::to_string(count) +
                       " CUDA device" + (count == 1 ? "" : "s") + ", numbered from 0";
  expect_failure(1, {"study", "max", "--device", name}, line);
  expect_failure(1, {"filter", "photo.png", "--filter", "ring", "-o", "out.png", "--device", name}, line);
  if (count == 0)
    for (const char* word : {"cuda", "gpu", "0"}) expect_failure(1, {"study", "max", "--device", word}, line);
}

TEST_F(BadInput, CaseTooLargeForMemory_IsAnError) {
  const ProgramResult result = run_program({"study", "xxt", "--cases", "99999999x3 f32"}, folder_.path());
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("tandem: error: [study xxt] case \"99999999x3 f32\" needs about "),
            std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace tandem
