// Decoding in a process of its own: the same pixels, and what happens when that process ends.
#include "tandem/train/decoders/decode_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tandem/image/decode.h"
#include "tandem/image/encode_png.h"
#include "tests/core/sanitized.h"
#include "tests/image/test_files.h"
#include "tests/paths.h"
#include "tests/process/without_capabilities.h"
#include "tests/train/classifier_models.h"

namespace tandem {
namespace {

std::string png(const Image& image) {
  const std::vector<std::uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

class DecodeProcessTest : public testing::Test {
 protected:
  std::vector<std::uint8_t> read(const std::string& file, const InputFormat& format) {
    std::vector<std::uint8_t> pixels(format.bytes());
    process_.read_input(file, format, pixels.data());
    return pixels;
  }

  Image picture(const std::string& file) {
    return process_.decode_image(file, "image", {.max_pixels = 1'000'000});
  }

  DecodeProcess process_{{.program = program_file, .max_pixels = 1'000'000}};
  const InputFormat photo_ = input_format(random_model_info("cnn")),
                    small_ = input_format(random_model_info("mlp"));
};

TEST_F(DecodeProcessTest, Pixels_AreThoseOfThisProcess) {
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (!entry.is_regular_file() || entry.path().extension() == ".npy" || !can_decode_file(entry.path()))
      continue;
    const std::vector<std::uint8_t> bytes = read_bytes(entry.path());
    const std::string file(bytes.begin(), bytes.end());
    for (const InputFormat& format : {photo_, small_}) {
      std::vector<std::uint8_t> expected(format.bytes());
      std::string error;
      try {
        InputReader(format).read(file, 1'000'000, expected.data());
      } catch (const Error& thrown) {
        error = thrown.what();
      }
      if (!error.empty()) {
        EXPECT_EQ(error_text([&] { read(file, format); }), error) << entry.path();
        continue;
      }
      EXPECT_EQ(read(file, format), expected) << entry.path();
      EXPECT_EQ(picture(file), decode_image(bytes, "image", {.max_pixels = 1'000'000})) << entry.path();
    }
  }
}

TEST_F(DecodeProcessTest, BadImages_HaveTheErrorsOfDecoding) {
  const auto kind = [&](const std::string& file) {
    try {
      read(file, photo_);
    } catch (const DecodeError& error) {
      return error.kind();
    }
    return SkipKind::unreadable;
  };
  EXPECT_EQ(kind("no image"), SkipKind::damaged);
  EXPECT_EQ(kind(""), SkipKind::damaged);
  EXPECT_EQ(kind(png(noise_image(1001, 1000, 1, 1))), SkipKind::too_large);
  const pid_t pid = process_.pid();
  EXPECT_EQ(read(png(noise_image(40, 40, 3, 1)), photo_).size(), photo_.bytes());
  EXPECT_EQ(process_.pid(), pid);  // an error does not end it
  EXPECT_THROW(process_.decode_image(png(noise_image(40, 40, 3, 1)), "a", {.max_pixels = 1599}), DecodeError);
}

TEST_F(DecodeProcessTest, EndedProcess_IsReplaced) {
  const std::string file = png(noise_image(40, 40, 3, 1));
  const std::vector<std::uint8_t> expected = read(file, photo_);
  const pid_t first = process_.pid();
  for (int i = 0; i < 3; ++i) {
    const pid_t pid = process_.pid();
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    EXPECT_EQ(read(file, photo_), expected);
    EXPECT_NE(process_.pid(), pid);
    EXPECT_TRUE(kill(pid, 0) != 0);  // reaped
  }
  EXPECT_NE(process_.pid(), first);
}

TEST_F(DecodeProcessTest, ProcessThatStandsStill_IsEnded) {
  DecodeProcess slow({.program = program_file, .timeout_ms = 50});
  slow.start();
  const pid_t pid = slow.pid();
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  std::vector<std::uint8_t> pixels(photo_.bytes());
  EXPECT_EQ(error_text([&] { slow.read_input(png(noise_image(40, 40, 3, 1)), photo_, pixels.data()); }),
            "[decode] image: takes too long to decode");
  EXPECT_TRUE(kill(pid, 0) != 0);
}

TEST_F(DecodeProcessTest, ProgramThatEndsAtOnce_IsACrash) {
  DecodeProcess broken({.program = "/bin/true"});
  std::vector<std::uint8_t> pixels(photo_.bytes());
  EXPECT_EQ(error_text([&] { broken.read_input("x", photo_, pixels.data()); }),
            "[decode] image: its decoder crashed");
  DecodeProcess missing({.program = "/no/such/program"});
  EXPECT_NE(error_text([&] { missing.start(); }), "");
}

TEST_F(DecodeProcessTest, LargeImage_LeavesNoMemoryBehind) {
  if (address_sanitized || thread_sanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  DecodeProcess process({.program = program_file, .max_pixels = 20'000'000});
  const auto resident_mib = [&] {
    std::ifstream statm("/proc/" + std::to_string(process.pid()) + "/statm");
    std::int64_t all = 0, resident = 0;
    statm >> all >> resident;
    return resident * sysconf(_SC_PAGESIZE) >> 20;
  };
  const std::string small = png(noise_image(400, 400, 3, 1)), large = png(make_image(4000, 4000, 3));
  std::vector<std::uint8_t> pixels(photo_.bytes()), other(small_.bytes());
  const auto read_all = [&](const std::string& file) {
    process.decode_image(file, "a", {.max_pixels = 20'000'000});
    process.read_input(file, small_, other.data());
    process.read_input(file, photo_, pixels.data());
  };
  read_all(small);
  const std::int64_t before = resident_mib();
  read_all(large);
  EXPECT_THROW(process.decode_image("", "a", {}), DecodeError);  // answered after the memory was given back
  EXPECT_LE(resident_mib(), before + 8);
}

// libde265 leaves parts of the pixels of this file as it finds them in memory.
TEST_F(DecodeProcessTest, DamagedImage_ShowsNothingOfOthers) {
  if (!can_decode("HEIC")) GTEST_SKIP() << "no decoder for HEIC";
  const auto file = [](const std::filesystem::path& path) {
    const std::vector<std::uint8_t> bytes = read_bytes(path);
    return std::string(bytes.begin(), bytes.end());
  };
  const std::filesystem::path source = source_folder;
  const std::string damaged = file(source / "fuzz/seeds/image_heif/uninitialized_pixels.heic");
  const Image first = picture(damaged);
  for (int i = 0; i < 4; ++i)
    for (const char* const other : {"heic_lossy.heic", "heic_rgb.heic", "jpeg_420.jpg"}) {
      picture(file(golden_folder() / other));
      EXPECT_EQ(picture(damaged), first);
    }
}

TEST_F(DecodeProcessTest, RootWithoutCapabilities_SaysWhyItIsNotConfined) {
  if (!can_drop_capabilities()) GTEST_SKIP() << "only for root";
  const std::string reason =
      "[decode] cannot confine the processes that decode images: root cannot become another user here: "
      "Operation not permitted; run as another user than root, or with the capabilities SETUID and SETGID";
  without_capabilities([&] {
    EXPECT_EQ(error_text([&] { process_.probe(); }), reason);
    const std::string large(16 << 20, '*');  // more than the buffer of a socket: sending it fails
    for (const std::string_view file : {std::string_view("x"), std::string_view(large)})
      EXPECT_EQ(error_text([&] { process_.decode_image(file, "a", {}); }), reason) << file.size();
  });
  process_.probe();
}

TEST_F(DecodeProcessTest, Process_IsConfined) {
  process_.start();
  read(png(noise_image(40, 40, 3, 1)), photo_);  // it has entered the sandbox
  std::ifstream status("/proc/" + std::to_string(process_.pid()) + "/status");
  std::map<std::string, std::string> fields;
  for (std::string name, value; status >> name && std::getline(status, value);) fields[name] = value;
  EXPECT_EQ(fields["NoNewPrivs:"], "\t1");
  EXPECT_EQ(fields["Seccomp:"], "\t2");
  EXPECT_EQ(fields["Threads:"], "\t1");
  std::ifstream limits("/proc/" + std::to_string(process_.pid()) + "/limits");
  const std::string text{std::istreambuf_iterator<char>(limits), {}};
  EXPECT_NE(text.find("Max core file size        0 "), std::string::npos) << text;
}

}  // namespace
}  // namespace tandem
