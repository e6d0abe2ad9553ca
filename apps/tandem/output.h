// Where results go: a file, or standard output for the name "-".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem {

// Adds `--json [FILE]`; `target` stays empty if it is not given. Without FILE the target is "-".
CLI::Option* add_json_flag(CLI::App& command, std::string& target, const std::string& help);

inline bool is_stdout(std::string_view path) {
  return path == "-";
}

// Writes to standard output at once; on a terminal without control characters, which names from files may
// contain. An error does not end what is being done: main() reports it at the end.
void print_text(std::string_view text);

template <class... Args>
void print_output(fmt::format_string<Args...> text, Args&&... args) {
  print_text(fmt::format(text, std::forward<Args>(args)...));
}

// Writes a result to a file, atomically, or to standard output. `op` names the command in errors.
void write_output(const std::string& path, std::string_view text, const char* op = "output");

// Throws the Error that write_output() would throw, before long work. An empty path is no output.
void check_output(const std::string& path, const char* op = "output");

// One figure or name of a small result.
struct ResultField {
  std::string name;
  std::variant<std::string, std::int64_t, double> value;  // a number that is not finite is left out
};

// A JSON object on one line, with a line end.
std::string result_json(const std::vector<ResultField>& fields);

// The words of the command line with "--json=-" for a --json without FILE. The word after --json is its FILE
// unless it begins with a dash, or is something to read: a data set's name, a folder, or a file with other
// contents than JSON. So `tandem eval --json RUN DATA` never writes over a model. --json=FILE takes any name.
std::vector<std::string> with_json_targets(std::vector<std::string> words);

}  // namespace tandem
