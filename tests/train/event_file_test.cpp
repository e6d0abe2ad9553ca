#include "tandem/train/event_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <vector>

#include "tandem/files/crc32c.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

class EventFileTest : public testing::Test {
 protected:
  EventFileTest() {
    std::string name = (fs::temp_directory_path() / "tandem-events-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~EventFileTest() override { fs::remove_all(folder_); }

  fs::path path() const { return folder_ / "events.out.tfevents.1"; }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

  fs::path folder_;
};

// An independent reader: lengths and checksums, then the fields of a scalar.
struct Scalar {
  std::string tag;
  std::int64_t step = 0;
  float value = 0;
  double wall_time = 0;
  bool operator==(const Scalar&) const = default;
};

std::uint32_t masked(std::string_view data) {
  const std::uint32_t crc = crc32c(data);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::vector<std::string> messages_of(const std::string& file) {
  std::vector<std::string> messages;
  std::size_t at = 0;
  while (at < file.size()) {
    std::uint64_t length = 0;
    std::uint32_t head = 0, tail = 0;
    if (file.size() - at < 16) break;
    std::memcpy(&length, file.data() + at, 8);
    std::memcpy(&head, file.data() + at + 8, 4);
    EXPECT_EQ(head, masked(std::string_view(file).substr(at, 8)));
    EXPECT_LE(at + 16 + length, file.size());
    messages.push_back(file.substr(at + 12, length));
    std::memcpy(&tail, file.data() + at + 12 + length, 4);
    EXPECT_EQ(tail, masked(messages.back()));
    at += 16 + length;
  }
  EXPECT_EQ(at, file.size());
  return messages;
}

// Handles only steps and lengths below 128.
Scalar scalar_of(const std::string& message) {
  Scalar scalar;
  EXPECT_EQ(message[0], 0x09);
  std::memcpy(&scalar.wall_time, message.data() + 1, 8);
  EXPECT_EQ(message[9], 0x10);
  scalar.step = message[10];
  EXPECT_EQ(message[11], 0x2A);
  EXPECT_EQ(message[12], static_cast<char>(message.size() - 13));
  EXPECT_EQ(message[13], 0x0A);
  EXPECT_EQ(message[14], static_cast<char>(message.size() - 15));
  EXPECT_EQ(message[15], 0x0A);
  const auto length = static_cast<std::size_t>(message[16]);
  scalar.tag = message.substr(17, length);
  EXPECT_EQ(message[17 + length], 0x15);
  std::memcpy(&scalar.value, message.data() + 18 + length, 4);
  EXPECT_EQ(message.size(), 22 + length);
  return scalar;
}

TEST(EventMessages, BytesMatchProtobuf) {
  // field 1, fixed64: 1.5; field 3, bytes: 13 letters
  EXPECT_EQ(version_event(1.5), bytes({0x09, 0, 0, 0, 0, 0, 0, 0xF8, 0x3F, 0x1A, 0x0D}) + "brain.Event:2");
  // field 1, fixed64: 1.5; field 2, varint: 300; field 5: Summary { field 1: Value { tag "loss", 0.5f } }
  EXPECT_EQ(scalar_event("loss", 300, 0.5, 1.5), bytes({0x09, 0, 0, 0, 0, 0, 0, 0xF8, 0x3F, 0x10, 0xAC, 0x02,
                                                        0x2A, 0x0D, 0x0A, 0x0B, 0x0A, 0x04}) +
                                                     "loss" + bytes({0x15, 0, 0, 0, 0x3F}));
  // a long tag needs a length of two bytes
  EXPECT_EQ(scalar_event(std::string(200, 'x'), 0, 0, 0).substr(9, 9),
            bytes({0x10, 0x00, 0x2A, 0xD3, 0x01, 0x0A, 0xD0, 0x01, 0x0A}));
}

TEST(EventMessages, Record_HasLengthAndChecksums) {
  // The CRC of eight bytes 09 00 … and of "123456789" (0xE3069283 rotated right by 15, plus 0xA282EAD8).
  const std::string record = event_record("123456789");
  ASSERT_EQ(record.size(), 25u);
  EXPECT_EQ(record.substr(0, 8), bytes({9, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(record.substr(21), bytes({0xE5, 0xB0, 0x8A, 0xC7}));
}

// Every file written by TensorFlow starts with a version event of 24 bytes.
TEST_F(EventFileTest, NewFile_StartsLikeTensorFlows) {
  EventFile file(path());
  EXPECT_EQ(content().substr(0, 13), bytes({0x18, 0, 0, 0, 0, 0, 0, 0, 0xA3, 0x7F, 0x4B, 0x22, 0x09}));
}

TEST_F(EventFileTest, File_HasVersionThenScalars) {
  {
    EventFile file(path());
    file.scalar("loss/train", 1, 0.25, 1000.5);
    file.scalar("accuracy/val", 2, 0.97, 1001);
    EXPECT_EQ(messages_of(content()).size(), 3u);  // flushed at once
  }
  const auto messages = messages_of(content());
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].substr(9), bytes({0x1A, 0x0D}) + "brain.Event:2");
  EXPECT_EQ(scalar_of(messages[1]), (Scalar{"loss/train", 1, 0.25f, 1000.5}));
  EXPECT_EQ(scalar_of(messages[2]), (Scalar{"accuracy/val", 2, 0.97f, 1001}));
}

TEST_F(EventFileTest, Reopened_Appends) {
  EventFile(path()).scalar("loss", 1, 0.5, 10);
  const std::string before = content();
  EventFile(path()).scalar("loss", 2, 0.25, 11);
  EXPECT_EQ(content(), before + event_record(scalar_event("loss", 2, 0.25, 11)));
}

TEST_F(EventFileTest, LaterSteps_AreCutOffOnResume) {
  {
    EventFile file(path());
    for (int step = 1; step <= 5; ++step) file.scalar("loss", step, 0.5, 10);
  }
  EventFile(path(), 3).scalar("loss", 4, 0.125, 20);
  const auto messages = messages_of(content());
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(scalar_of(messages[3]).step, 3);
  EXPECT_EQ(scalar_of(messages[4]), (Scalar{"loss", 4, 0.125f, 20}));
}

TEST_F(EventFileTest, IncompleteRecord_IsCutOff) {
  EventFile(path()).scalar("loss", 1, 0.5, 10);
  const std::string whole = content();
  const std::string next = event_record(scalar_event("loss", 2, 0.25, 11));
  for (std::size_t length = 1; length < next.size(); ++length) {
    put(whole + next.substr(0, length));
    EventFile file(path());
    EXPECT_EQ(content(), whole) << length;
  }
  const std::size_t version = messages_of(whole)[0].size() + 16;
  for (std::size_t length = 0; length < version; ++length) {  // killed during its first write
    put(whole.substr(0, length));
    EventFile file(path());
    EXPECT_EQ(messages_of(content()).size(), 1u) << length;
  }
}

TEST_F(EventFileTest, FlippedBit_CutsOffTheRest) {
  EventFile(path()).scalar("loss", 1, 0.5, 10);
  const std::string whole = content();
  std::string broken = whole + event_record(scalar_event("loss", 2, 0.25, 11));
  broken[broken.size() - 6] = static_cast<char>(broken[broken.size() - 6] ^ 1);
  put(broken);
  EventFile file(path());
  EXPECT_EQ(content(), whole);
}

TEST_F(EventFileTest, ZerosOfAPowerFailure_AreCutOff) {
  EventFile(path()).scalar("loss", 1, 0.5, 10);
  const std::string whole = content();
  put(whole + std::string(50, '\0'));
  EventFile{path()};
  EXPECT_EQ(content(), whole);
  put(std::string(whole.size(), '\0'));
  EventFile{path()};
  EXPECT_EQ(messages_of(content()).size(), 1u);
}

TEST_F(EventFileTest, ForeignFile_IsNotChanged) {
  const std::string foreign = "epoch,train_loss,train_accuracy,val_loss,val_accuracy\n1,2,3,4,5\n";
  put(foreign);
  EXPECT_EQ(error_text([&] { EventFile file(path()); }),
            "[events] expected TensorBoard events in " + path().string() + ", got something else");
  EXPECT_EQ(content(), foreign);
}

TEST_F(EventFileTest, UnwritablePath_IsNamed) {
  const fs::path nowhere = folder_ / "none" / "events";
  EXPECT_EQ(error_text([&] { EventFile file(nowhere); }),
            "[events] cannot write " + nowhere.string() + ": No such file or directory");
}

}  // namespace
}  // namespace tandem
