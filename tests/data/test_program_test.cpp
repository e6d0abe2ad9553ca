// The entry of the test program, see test_program.h.
#include "tests/data/test_program.h"

#include <functional>
#include <map>

int main(int argc, char** argv) {
  const tandem::Words words(argv + 1, argv + argc);
  const std::map<std::string, std::function<int(const tandem::Words&)>> parts{
      {"queue-writer", tandem::queue_writer},
      {"worker", tandem::loader_worker},
      {"loader-parent", tandem::loader_parent},
      {"bound-loader", tandem::bound_loader}};
  if (!words.empty())
    if (const auto found = parts.find(words[0]); found != parts.end()) return found->second(words);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
