#include "apps/tandem/output.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/core/write_file.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// Whether a word is something that a command reads, so that a result must not be written over it.
bool is_input(const std::string& word) {
  if (datasets().find(word)) return true;
  std::error_code ignored;
  if (std::filesystem::is_directory(word, ignored)) return true;
  if (!std::filesystem::is_regular_file(word, ignored)) return false;
  char first = '{';  // an empty file may be written
  std::ifstream(word, std::ios::binary).get(first);
  return first != '{' && first != '[';
}

bool is_json_target(const std::string& word) {
  return word == "-" || (!word.empty() && word[0] != '-' && !is_input(word));
}

}  // namespace

CLI::Option* add_json_flag(CLI::App& command, std::string& target, const std::string& help) {
  return command.add_option("--json", target, help)->type_name("[FILE]");
}

void print_text(std::string_view text) {
  const std::string clean = ::isatty(STDOUT_FILENO) != 0 ? without_controls(text) : std::string(text);
  std::fwrite(clean.data(), 1, clean.size(), stdout);
  std::fflush(stdout);
}

void write_output(const std::string& path, std::string_view text, const char* op) {
  if (is_stdout(path))
    print_text(text);
  else
    write_file(op, path, text);
}

void check_output(const std::string& path, const char* op) {
  if (!path.empty() && !is_stdout(path)) check_writable(op, path);
}

std::string result_json(const std::vector<ResultField>& fields) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const ResultField& field : fields) {
    const auto* number = std::get_if<double>(&field.value);
    if (number != nullptr && !std::isfinite(*number)) continue;
    std::visit([&](const auto& value) { json[field.name] = value; }, field.value);
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::vector<std::string> with_json_targets(std::vector<std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") break;
    if (words[i] == "--json" && (i + 1 == words.size() || !is_json_target(words[i + 1])))
      words[i] = "--json=-";
  }
  return words;
}

}  // namespace tandem
