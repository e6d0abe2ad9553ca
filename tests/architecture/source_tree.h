// The source files as the architecture rules need them: path, room, code without comments, and includes. They
// are read from any root, so that the rules can be tested on synthetic trees as well as on the repository.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::architecture {

struct Include {
  std::size_t line = 0;
  std::string target;
  bool quoted = false;
};

struct SourceFile {
  std::string path;  // relative to the root, with '/'
  std::vector<std::string> code;
  std::vector<Include> includes;

  // "ops" for tandem/ops/add.cpp, "apps/tandem" for the program, "" for a file in no room.
  std::string room() const {
    if (path == "tandem/plugin.h") return "core";  // plain C, includes nothing
    const auto first = path.find('/');
    const auto second = first == std::string::npos ? first : path.find('/', first + 1);
    if (second == std::string::npos) return "";
    return path.starts_with("tandem/") ? path.substr(first + 1, second - first - 1) : path.substr(0, second);
  }
  std::string extension() const { return std::filesystem::path(path).extension().string(); }
  std::string stem() const { return std::filesystem::path(path).stem().string(); }
  bool in_library() const { return path.starts_with("tandem/"); }
};

// Replaces comments and raw strings with spaces. Line breaks are kept, so that line numbers stay the same.
inline std::string without_comments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto blank = [&out](std::string_view part) {
    for (const char c : part) out += c == '\n' ? '\n' : ' ';
  };
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::size_t i = 0;
  while (i < text.size()) {
    const auto rest = text.substr(i);
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      const bool line_comment = rest[1] == '/';
      const auto end = line_comment ? rest.find('\n') : rest.find("*/", 2);
      const auto length = end == std::string_view::npos ? rest.size() : end + (line_comment ? 0 : 2);
      blank(rest.substr(0, length));
      i += length;
    } else if (rest.starts_with("R\"") && rest.find('(') != std::string_view::npos) {
      const auto open = rest.find('(');
      const auto closing = ")" + std::string(rest.substr(2, open - 2)) + "\"";
      const auto end = rest.find(closing, open);
      const auto length = end == std::string_view::npos ? rest.size() : end + closing.size();
      blank(rest.substr(0, length));
      i += length;
    } else if (rest[0] == '"' || (rest[0] == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      std::size_t end = 1;  // a literal; the ' in 1'000 does not start one
      while (end < rest.size() && rest[end] != rest[0] && rest[end] != '\n') end += rest[end] == '\\' ? 2 : 1;
      const auto length = std::min(end + 1, rest.size());
      out += rest.substr(0, length);
      i += length;
    } else {
      out += rest[0];
      ++i;
    }
  }
  return out;
}

// The word after '#' ("include", "define", ...) and the rest of the line. Both are empty for an ordinary
// line.
struct Directive {
  std::string_view name;
  std::string_view rest;
};

inline Directive directive(std::string_view line) {
  const auto skip_blanks = [](std::string_view s) {
    s.remove_prefix(std::min(s.find_first_not_of(" \t"), s.size()));
    return s;
  };
  line = skip_blanks(line);
  if (!line.starts_with('#')) return {};
  line = skip_blanks(line.substr(1));
  const auto end = std::min(line.find_first_of(" \t\"<"), line.size());
  return {line.substr(0, end), skip_blanks(line.substr(end))};
}

inline SourceFile parse_source(std::string path, std::string_view text) {
  SourceFile file{.path = std::move(path), .code = {}, .includes = {}};
  std::istringstream lines(without_comments(text));
  for (std::string line; std::getline(lines, line);) file.code.push_back(line);
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    const auto [name, rest] = directive(file.code[i]);
    if (name != "include" || rest.empty() || (rest[0] != '"' && rest[0] != '<')) continue;
    const auto end = rest.find(rest[0] == '"' ? '"' : '>', 1);
    if (end != std::string_view::npos)
      file.includes.push_back({i + 1, std::string(rest.substr(1, end - 1)), rest[0] == '"'});
  }
  return file;
}

// All C++ and CUDA sources under the given folders of `root`, sorted by path. Missing folders are ignored.
inline std::vector<SourceFile> read_sources(const std::filesystem::path& root,
                                            const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  static constexpr std::string_view extensions[] = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh"};
  std::vector<SourceFile> files;
  for (const auto& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto extension = entry.path().extension().string();
      if (!entry.is_regular_file() || std::ranges::find(extensions, extension) == std::end(extensions))
        continue;
      std::ifstream in(entry.path(), std::ios::binary);
      if (!in) throw std::runtime_error("cannot read " + entry.path().string());
      const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      files.push_back(parse_source(entry.path().lexically_relative(root).generic_string(), text));
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

}  // namespace tandem::architecture
