// replay [--mutations N] FILE…: runs a fuzz target on stored inputs, also on those of folders, and on N
// changes of them that are the same in every run. For compilers without libFuzzer.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "fuzz/fuzz_mutator.h"

// Defined by targets with a mutator of their own.
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                             std::size_t max_size, unsigned seed);

namespace {

std::mt19937 random_words;  // has the same values everywhere
int mutation = 0;
std::vector<std::uint8_t> current;  // the input of that mutation

std::size_t random_below(std::size_t limit) {
  return random_words() % limit;
}

// So that a crash can be repeated.
void say_where(int signal) {
  std::fprintf(stderr, "signal %d in mutation %d, of the bytes ", signal, mutation);
  for (const std::uint8_t byte : current) std::fprintf(stderr, "%02x", byte);
  std::fprintf(stderr, "\n");
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::vector<std::uint8_t> changed(std::vector<std::uint8_t> bytes) {
  constexpr std::size_t room = 64;
  std::size_t size = bytes.size();
  const std::size_t max_size = size + room;
  bytes.resize(max_size);
  for (std::size_t count = 1 + random_below(3); count > 0; --count)
    size = LLVMFuzzerCustomMutator
               ? LLVMFuzzerCustomMutator(bytes.data(), size, max_size, static_cast<unsigned>(random_words()))
               : LLVMFuzzerMutate(bytes.data(), size, max_size);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

void run(const std::vector<std::uint8_t>& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

// One change: a bit, a byte, a copied part, an inserted or removed part.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  constexpr std::array<std::uint8_t, 8> edges = {0, 1, 0x7f, 0x80, 0xff, '0', '"', '\n'};
  const std::size_t choice = random_below(6);
  if (size == 0 || (choice == 0 && size < max_size)) {
    if (max_size == 0) return 0;
    const std::size_t at = random_below(size + 1);
    std::copy_backward(data + at, data + size, data + size + 1);
    data[at] = static_cast<std::uint8_t>(random_words());
    return size + 1;
  }
  const std::size_t at = random_below(size), length = 1 + random_below(std::min<std::size_t>(size - at, 8));
  if (choice == 1) {
    std::copy(data + at + length, data + size, data + at);
    return size - length;
  }
  if (choice == 2) data[at] = edges[random_below(edges.size())];
  if (choice == 3) data[at] = static_cast<std::uint8_t>(random_words());
  if (choice == 4) data[at] ^= static_cast<std::uint8_t>(1u << random_below(8));
  if (choice == 5) {
    const std::vector<std::uint8_t> part(data + at, data + at + length);
    std::copy(part.begin(), part.end(), data + random_below(size - length + 1));
  }
  return size;
}

int main(int count, char** words) {
  int mutations = 0, first = 1;
  if (count > 2 && std::string_view(words[1]) == "--mutations") {
    mutations = std::stoi(words[2]);
    first = 3;
  }
  std::vector<std::filesystem::path> paths;
  for (int i = first; i < count; ++i) {
    paths.emplace_back(words[i]);
    if (!std::filesystem::is_directory(paths.back())) continue;
    const std::filesystem::path folder = paths.back();
    paths.pop_back();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  }
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const std::filesystem::path& path : paths) {
    fmt::print(stderr, "{}\n", path.string());  // the last one is the one that crashed
    std::ifstream file(path, std::ios::binary);
    if (!file) return 1;
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    run(inputs.back());
  }
  if (inputs.empty()) return 1;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, say_where);
  for (; mutation < mutations; ++mutation) {
    current = changed(inputs[static_cast<std::size_t>(mutation) % inputs.size()]);
    run(current);
  }
  fmt::print("{} inputs, {} changes\n", inputs.size(), mutations);
  return 0;
}
