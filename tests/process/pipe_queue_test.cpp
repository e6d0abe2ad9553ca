#include "tandem/process/pipe_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <climits>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "tandem/core/philox.h"
#include "tests/core/error_text.h"
#include "tests/core/sanitized.h"
#include "tests/process/start_self.h"

namespace tandem {

int queue_writer(const Words& words);

namespace {

using std::chrono::milliseconds;

// Message `number` of a writer: both indices, then bytes derived from them. One in `long_every` is long.
Message numbered_message(std::uint32_t writer, std::uint32_t number, std::uint32_t long_every) {
  const Words4 random = philox({{writer, number, 0, 0}}, 7);
  const std::size_t size =
      random.word[0] % long_every == 0 ? 8 + random.word[1] % 20000 : 8 + random.word[1] % 60;
  Message message(size);
  for (std::size_t i = 8; i < size; ++i) message[i] = static_cast<std::byte>(random.word[2] + 31 * i);
  std::memcpy(message.data(), &writer, 4);
  std::memcpy(message.data() + 4, &number, 4);
  return message;
}

void put_numbered(const PipeQueue& queue, std::uint32_t writer, std::uint32_t count,
                  std::uint32_t long_every) {
  for (std::uint32_t number = 0; number < count; ++number)
    queue.put(numbered_message(writer, number, long_every));
}

// Checks that each writer's messages arrive complete, in order and once.
class Receiver {
 public:
  explicit Receiver(std::uint32_t long_every) : long_every_(long_every) {}

  // Returns the writer.
  std::uint32_t check(const Message& message) {
    std::uint32_t writer = 0, number = 0;
    if (message.size() < 8) throw std::runtime_error("a torn message");
    std::memcpy(&writer, message.data(), 4);
    std::memcpy(&number, message.data() + 4, 4);
    if (number != next_[writer]++) throw std::runtime_error("a message is lost or came twice");
    if (message != numbered_message(writer, number, long_every_)) throw std::runtime_error("a torn message");
    return writer;
  }
  std::uint32_t received(std::uint32_t writer) { return next_[writer]; }

 private:
  std::uint32_t long_every_;
  std::map<std::uint32_t, std::uint32_t> next_;
};

pid_t start_writer(const PipeQueue& queue, std::uint32_t writer, std::uint32_t count,
                   std::uint32_t long_every) {
  const PipeQueueEnds ends = queue.ends();
  return start_self({"queue-writer", std::to_string(ends.write), std::to_string(ends.lock),
                     std::to_string(writer), std::to_string(count), std::to_string(long_every)},
                    {ends.write, ends.lock});
}

Message bytes_of(const std::string& text) {
  Message message(text.size());
  std::memcpy(message.data(), text.data(), text.size());
  return message;
}

TEST(PipeQueue, Get_ReturnsMessagesInOrder) {
  PipeQueue queue;
  EXPECT_TRUE(queue.empty());
  queue.put(bytes_of("one"));
  queue.put({});
  queue.put(bytes_of("three"));
  EXPECT_EQ(queue.length(), 3);
  EXPECT_EQ(queue.get(), bytes_of("one"));
  EXPECT_EQ(queue.length(), 2);
  EXPECT_EQ(queue.get(milliseconds(0)), Message{});
  EXPECT_EQ(queue.get(), bytes_of("three"));
  EXPECT_TRUE(queue.empty());
}

TEST(PipeQueue, MessagesAroundPipeBuf_ArriveWhole) {
  PipeQueue queue;
  for (const std::size_t size :
       {PIPE_BUF - 9, PIPE_BUF - 8, PIPE_BUF - 7, 2 * (PIPE_BUF - 8), 10 * PIPE_BUF}) {
    const Message message(size, std::byte{42});
    queue.put(message);
    EXPECT_EQ(queue.length(), 1) << size;
    EXPECT_EQ(queue.get(), message) << size;
  }
}

TEST(PipeQueue, Get_OnAnEmptyQueue_WaitsForTheTimeout) {
  PipeQueue queue;
  EXPECT_EQ(queue.get(milliseconds(0)), std::nullopt);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(queue.get(milliseconds(20)), std::nullopt);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(20));
  EXPECT_FALSE(queue.ended());
}

TEST(PipeQueue, Get_WhenEveryWriterIsGone_ReturnsNone) {
  PipeQueue queue;
  queue.put(bytes_of("last"));
  queue.close_writer();
  EXPECT_FALSE(queue.ended());
  EXPECT_EQ(queue.get(), bytes_of("last"));
  EXPECT_EQ(queue.get(), std::nullopt);
  EXPECT_EQ(queue.get(milliseconds(1000000)), std::nullopt);
  EXPECT_TRUE(queue.ended());
}

TEST(PipeQueue, Put_WithoutAReader_ThrowsAndRaisesNoSignal) {
  PipeQueue queue;
  queue.close_reader();
  EXPECT_EQ(error_text([&] { queue.put(bytes_of("x")); }),
            "[queue] cannot put a message: the reader is gone");
  EXPECT_EQ(error_text([&] { queue.put(Message(100000)); }),
            "[queue] cannot put a message: the reader is gone");
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST(PipeQueue, New_WithoutDescriptors_ThrowsAndNamesTheLimit) {
  if (address_sanitized) GTEST_SKIP() << "UBSan opens a pipe to check the type of an object";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(lowest);
  for (const int room : {0, 2}) {  // no descriptor for the pipe; none for the lock
    const rlimit small{static_cast<rlim_t>(lowest + room), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    const std::string text = error_text([] { PipeQueue queue; });
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_NE(text.find("Too many open files: raise the limit (ulimit -n)"), std::string::npos) << text;
  }
  const int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  EXPECT_EQ(after, lowest);  // descriptors made before the failure are closed
}

TEST(PipeQueue, Get_BytesThatAreNoFrame_Throws) {
  PipeQueue queue;
  const Message noise(64, std::byte{0xEE});
  ASSERT_EQ(write(queue.ends().write, noise.data(), noise.size()), 64);
  EXPECT_EQ(error_text([&] { queue.get(); }).rfind("[queue] expected a frame", 0), 0U);
  EXPECT_EQ(error_text([] { PipeQueue broken(PipeQueueEnds{.write = 1 << 20}); }),
            "[queue] expected an open descriptor, got 1048576");
}

constexpr std::uint32_t writers = 8, messages = 100000;

TEST(PipeQueue, ManyThreads_LoseNoMessage) {
  PipeQueue queue;
  std::vector<std::thread> threads;
  for (std::uint32_t writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] { put_numbered(queue, writer, messages, 50); });
  Receiver receiver(50);
  for (std::uint32_t i = 0; i < writers * messages; ++i) receiver.check(*queue.get());
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(queue.empty());
  for (std::uint32_t writer = 0; writer < writers; ++writer) EXPECT_EQ(receiver.received(writer), messages);
}

TEST(PipeQueue, ManyProcesses_LoseNoMessage) {
  PipeQueue queue;
  std::vector<pid_t> children;
  for (std::uint32_t writer = 0; writer < writers; ++writer)
    children.push_back(start_writer(queue, writer, messages, 50));
  queue.close_writer();
  Receiver receiver(50);
  while (const auto message = queue.get()) receiver.check(*message);
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  for (std::uint32_t writer = 0; writer < writers; ++writer) EXPECT_EQ(receiver.received(writer), messages);
}

// Every few thousand messages one of the endless writers is killed and replaced, while three finite writers
// must lose nothing.
TEST(PipeQueue, KilledWriters_NeitherTearNorBlockMessages) {
  PipeQueue queue;
  constexpr std::uint32_t finite = 3, count = 15000, endless = UINT_MAX, long_every = 3;
  std::vector<pid_t> finite_writers;
  std::vector<pid_t> endless_writers;
  std::uint32_t next_writer = finite;
  for (std::uint32_t writer = 0; writer < finite; ++writer)
    finite_writers.push_back(start_writer(queue, writer, count, long_every));
  for (int i = 0; i < 5; ++i)
    endless_writers.push_back(start_writer(queue, next_writer++, endless, long_every));
  Receiver receiver(long_every);
  int kills = 0;
  for (std::uint32_t got = 1, left = finite; left > 0; ++got) {
    const std::uint32_t writer = receiver.check(*queue.get());
    if (writer < finite && receiver.received(writer) == count) --left;
    if (got % 2000 != 0) continue;
    pid_t& victim = endless_writers[philox({{got, 0, 0, 0}}, 1).word[0] % endless_writers.size()];
    kill(victim, SIGKILL);
    EXPECT_EQ(WTERMSIG(wait_for(victim)), SIGKILL);
    victim = start_writer(queue, next_writer++, endless, long_every);
    ++kills;
  }
  for (const pid_t child : finite_writers) EXPECT_EQ(wait_for(child), 0);
  for (const pid_t child : endless_writers) {
    kill(child, SIGKILL);
    wait_for(child);
  }
  queue.close_writer();
  while (const auto message = queue.get()) receiver.check(*message);
  EXPECT_GE(kills, 20);
}

TEST(PipeQueue, WriterKilledWithTheLock_BlocksNobody) {
  PipeQueue queue;
  const int capacity = fcntl(queue.ends().write, F_GETPIPE_SZ);
  const PipeQueueEnds ends = queue.ends();
  const pid_t child = start_self(
      {"queue-writer", std::to_string(ends.write), std::to_string(ends.lock), "big", "1000000", "1"},
      {ends.write, ends.lock});
  // It holds the lock from the first byte on, and the full pipe keeps it from finishing its message.
  for (int waiting = 0; waiting < capacity;) {
    ASSERT_EQ(ioctl(ends.read, FIONREAD, &waiting), 0);
    std::this_thread::yield();
  }
  kill(child, SIGKILL);
  EXPECT_EQ(WTERMSIG(wait_for(child)), SIGKILL);
  const Message whole(500000, std::byte{7});
  std::thread other([&] {
    queue.put(bytes_of("short"));
    queue.put(whole);
    queue.put(whole);
  });
  EXPECT_EQ(queue.get(), bytes_of("short"));
  EXPECT_EQ(queue.get(), whole);
  EXPECT_EQ(queue.get(), whole);
  other.join();
  EXPECT_TRUE(queue.empty());
}

}  // namespace

// queue-writer WRITE-FD LOCK-FD WRITER COUNT LONG-EVERY, or "big" BYTES for one message.
int queue_writer(const Words& words) {
  const PipeQueue queue(PipeQueueEnds{.write = std::stoi(words.at(1)), .lock = std::stoi(words.at(2))});
  if (words.at(3) == "big")
    queue.put(Message(std::stoul(words.at(4))));
  else
    put_numbered(queue, static_cast<std::uint32_t>(std::stoul(words.at(3))),
                 static_cast<std::uint32_t>(std::stoul(words.at(4))),
                 static_cast<std::uint32_t>(std::stoul(words.at(5))));
  return 0;
}

}  // namespace tandem
