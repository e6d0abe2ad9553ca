// Runs a fuzz target on stored inputs. For compilers without libFuzzer.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/fuzz.h"

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    fmt::print(stderr, "{}\n", words[i]);  // the last one is the one that crashed
    std::ifstream file(words[i], std::ios::binary);
    if (!file) return 1;
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  fmt::print("{} inputs\n", count - 1);
  return count > 1 ? 0 : 1;
}
