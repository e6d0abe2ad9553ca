// The test program's main(), see test_program.h.
#include "tests/data/test_program.h"

#include <functional>
#include <map>

int main(int argc, char** argv) {
  tandem::register_test_datasets();
  tandem::register_test_operations();
  const tandem::Words words(argv + 1, argv + argc);
  const std::map<std::string, std::function<int(const tandem::Words&)>> roles{
      {"worker", tandem::loader_worker},
      {"loader-parent", tandem::loader_parent},
      {"bound-loader", tandem::bound_loader}};
  if (!words.empty())
    if (const auto found = roles.find(words[0]); found != roles.end()) return found->second(words);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
