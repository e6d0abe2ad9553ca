// Damaged and hostile run folders: whatever the bytes, they are read and shown, in bounded memory and without
// control characters. Most useful under asan.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/text/utf8.h"
#include "tandem/train/watch/watch_view.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

const std::array<std::pair<const char*, std::string>, 5> seeds{{
    {"config.toml", "data = \"digits\"\nmodel = \"mlp\"\nepochs = 5\nbatch_size = 16\ndevice = \"cpu\"\n"},
    {"status.json",
     "{\"state\": \"running\", \"device\": \"cpu\", \"engine\": \"e\", \"validated_on\": \"validation\", "
     "\"epochs\": 5, \"steps_per_epoch\": 100, \"samples_per_epoch\": 1600, \"test_accuracy\": 0.5, "
     "\"tested_on\": \"test\", \"warnings\": [\"one\", \"two\"], \"message\": \"why\"}"},
    {"log.csv",
     "epoch,train_loss,train_accuracy,val_loss,val_accuracy,learning_rate,seconds,samples_per_second,"
     "waited_seconds,own\n1,1.25,0.5,1.0,0.6,0.5,1.5,1500,0.1,3\n2,1,0.6,0.9,0.75,0.5,1.5,1500,0.1,4\n"
     "3,0.9,0.7,1.1,0.7,0.5,1.5,1500,0.1,5\n"},
    {"steps.csv",
     "step,epoch,loss,learning_rate,samples_per_second,waited_share,memory_mb,device_memory_mb\n"
     "50,1,1.5,0.5,1000.0,0.2500,512.5,\n100,1,1.25,0.5,1000.0,0.2500,512.5,\n150,2,1.1,0.5,1000.0,0,5,7\n"},
    {".lock", "4711 node\n"},
}};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return engine_() % std::max<std::size_t>(n, 1); }

 private:
  std::mt19937 engine_;
};

// Numbers that are not expected, and pieces of escape sequences.
void damage(std::string& bytes, Random& random) {
  constexpr std::array<std::string_view, 16> pieces{
      "nan",     "-inf", "1e308", "-1e308", "1e-320", "9223372036854775807", "-1", "1e15",
      "\x1b[2J", "\n",   ",",     "\"",     "\xff",   "\xf0\x9f\x98\x80",    "",   "[["};
  for (std::size_t changes = 1 + random.below(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = random.below(bytes.size());
    switch (random.below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        bytes.insert(at, pieces[random.below(pieces.size())]);
        break;
      case 2: {  // in place of a number
        const std::size_t begin = bytes.find_first_of("0123456789", at);
        if (begin == std::string::npos) break;
        const std::size_t end = std::min(bytes.find_first_not_of("0123456789.", begin), bytes.size());
        bytes.replace(begin, end - begin, pieces[random.below(pieces.size())]);
        break;
      }
      default:
        bytes.resize(at);
    }
  }
}

void expect_shown(const WatchedRun& run, Random& random) {
  const std::vector<const WatchedRun*> runs(1 + random.below(2), &run);
  WatchView view{.width = 1 + static_cast<int>(random.below(120)),
                 .height = 1 + static_cast<int>(random.below(60)),
                 .style = {.color = false, .utf8 = random.below(4) != 0},
                 .by_epoch = random.below(2) == 0,
                 .log_axis = random.below(2) == 0,
                 .zoom = static_cast<int>(random.below(max_zoom + 1)),
                 .now = 2e9};
  for (const std::string& line : watch_frame(runs, view)) {
    ASSERT_LE(display_width(line), view.width) << line;
    ASSERT_EQ(line, one_line(line));
  }
  ASSERT_EQ(watch_end_line(run), one_line(watch_end_line(run)));
}

TEST(WatchFuzz, DamagedFiles_AreReadAndShown) {
  const TempFolder folder;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    RunReader reader(folder.path());
    for (int round = 0; round < 2; ++round) {  // the second finds files that were replaced
      for (const auto& [name, text] : seeds) {
        std::string bytes = text;
        if (random.below(2) == 0) damage(bytes, random);
        std::filesystem::remove(folder / name);  // file systems sync a file that is overwritten
        put_bytes(folder / name, bytes);
      }
      ASSERT_NO_THROW(reader.poll(2e9, [&](const EpochRecord& record) {
        const std::string line = watch_epoch_line(reader.run(), record);
        ASSERT_EQ(line, one_line(line));
      })) << seed;
      ASSERT_NO_FATAL_FAILURE(expect_shown(reader.run(), random)) << seed;
    }
  }
}

TEST(WatchFuzz, DeepAndLongFiles_AreRefused) {
  const TempFolder folder;
  const std::size_t size = 200'000;
  for (const char* const text : {"[", "{\"a\":", "\"", "a = [", "\x1b[", ","})
    for (const char* const name : {"config.toml", "status.json", "log.csv", "steps.csv", ".lock"}) {
      std::string bytes;
      while (bytes.size() < size) bytes += text;
      std::filesystem::remove(folder / name);
      put_bytes(folder / name, bytes);
      RunReader reader(folder.path());
      ASSERT_NO_THROW(reader.poll(2e9)) << name << " " << text;
      Random random(1);
      ASSERT_NO_FATAL_FAILURE(expect_shown(reader.run(), random));
    }
}

}  // namespace
}  // namespace tandem
