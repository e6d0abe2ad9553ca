// The test program's main(): the queue's tests start this program again as a writer.
#include "tests/process/start_self.h"

namespace tandem {
int queue_writer(const Words& words);  // pipe_queue_test.cpp
}

int main(int argc, char** argv) {
  const tandem::Words words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "queue-writer") return tandem::queue_writer(words);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
