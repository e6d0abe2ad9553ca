#include "tandem/files/pickle_scan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/files/gzip.h"
#include "tandem/files/pth_state_dict.h"
#include "tandem/files/tar.h"
#include "tandem/files/zip.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr int max_depth = 4;  // of archives in each other
constexpr std::uint64_t unpacked_base = 64 << 20, unpacked_factor = 4;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) && std::ranges::all_of(text, is_word_character);
}

bool is_tar(std::string_view bytes) {
  return bytes.size() > 262 && bytes.substr(257, 5) == "ustar";
}

// "folder/" of "folder/data.pkl"; nothing for other names.
std::optional<std::string_view> folder_of_data(std::string_view name) {
  constexpr std::string_view end = "data.pkl";
  if (!name.ends_with(end)) return std::nullopt;
  name.remove_suffix(end.size());
  return name;
}

class Scanner {
 public:
  Scanner(std::string_view bytes, const std::string& name, bool is_pickle)
      : name_(name), left_(unpacked_base + unpacked_factor * bytes.size()) {
    scan(bytes, is_pickle, 0);
  }

  PickleScan take() { return std::move(found_); }

 private:
  // `is_named`: the name says that it is a pickle. Otherwise only what looks like a name is believed.
  void scan(std::string_view bytes, bool is_named, int depth) {
    constexpr std::string_view numpy_magic = "\x93NUMPY";
    if (depth > max_depth) return note("archives are nested too deeply");
    if (is_zip(bytes)) return scan_zip(bytes, depth);
    if (is_gzip(bytes)) return scan_gzip(bytes, depth);
    if (is_tar(bytes)) return scan_tar(bytes, depth);
    if (bytes.starts_with(numpy_magic)) return scan_numpy(bytes, depth);
    scan_sequence(bytes, is_named);
  }

  void scan_sequence(std::string_view rest, bool is_named) {
    const bool is_likely = begins_like_pickle(rest);
    for (int i = 0, count = std::numeric_limits<int>::max(); i < count && !rest.empty(); ++i) {
      const PartialPickle part = parse_pickle_partly(rest, name_);
      for (const PickleName& name : part.pickle.names)
        if (is_named || is_word(name.name)) add(name);
      rest.remove_prefix(part.pickle.size);
      if (!part.problem.empty()) {
        if (i == 0 && is_named) note(part.problem);
        if (is_named && is_likely) sweep(rest);
        return;
      }
      if (i == 0 && is_legacy_magic(part.pickle.at(part.pickle.root))) count = legacy_pickles;
    }
  }

  void scan_zip(std::string_view bytes, int depth) {
    std::vector<ZipEntry> entries;
    try {
      entries = read_zip(bytes, name_);
    } catch (const Error& error) {
      note(error.what());
      return sweep(bytes);
    }
    // What torch.load reads as raw numbers is no pickle, whatever it looks like.
    std::string storages = "/";
    for (const ZipEntry& entry : entries)
      if (const auto folder = folder_of_data(entry.name)) storages = std::string(*folder) + "data/";
    for (const ZipEntry& entry : entries) {
      const std::string_view entry_name = entry.name;
      if (entry_name.starts_with(storages) &&
          std::ranges::all_of(entry_name.substr(storages.size()), is_digit))
        continue;
      const bool is_named = entry_name.ends_with(".pkl") || entry_name.ends_with(".pickle");
      std::string unpacked;
      try {
        if (entry.deflated && !take_budget(entry.size)) return;
        scan(unpack_entry(entry, unpacked, name_), is_named, depth + 1);
      } catch (const Error& error) {  // a wrong checksum: other programs may not look at it
        note(error.what());
        scan(entry.deflated ? unpacked : entry.packed, is_named, depth + 1);
      }
    }
  }

  void scan_gzip(std::string_view bytes, int depth) {
    try {
      const std::string unpacked = gunzip(bytes, left_, name_);
      if (take_budget(unpacked.size())) scan(unpacked, false, depth + 1);
    } catch (const Error& error) {
      note(error.what());
    }
  }

  void scan_tar(std::string_view bytes, int depth) {
    try {
      for (const TarEntry& entry : read_tar(bytes, name_)) scan(entry.contents, false, depth + 1);
    } catch (const Error& error) {
      note(error.what());
      sweep(bytes);
    }
  }

  // An array of objects is a pickle after the header.
  void scan_numpy(std::string_view bytes, int depth) {
    constexpr std::size_t prefix = 10;  // magic, version, and length of the header: two bytes or four
    if (bytes.size() < prefix + 2) return;
    const auto byte = [&](std::size_t at) { return std::size_t{static_cast<unsigned char>(bytes[at])}; };
    const std::size_t length_bytes = byte(6) == 1 ? 2 : 4;
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(8 + i) << (8 * i);
    const std::size_t header_end = 8 + length_bytes + length;
    if (header_end <= bytes.size() && bytes.substr(0, header_end).find('O') != std::string_view::npos)
      scan(bytes.substr(header_end), true, depth + 1);
  }

  // Looks for what a pickle's import of a name looks like in bytes that are not one: GLOBAL and INST, of two
  // lines, and two short texts before STACK_GLOBAL.
  void sweep(std::string_view bytes) {
    for (std::size_t end = bytes.find('\n'), last = 0; end != std::string_view::npos;) {
      const std::size_t next = bytes.find('\n', end + 1);
      if (next == std::string_view::npos) break;
      std::size_t begin = end;
      while (begin > last && is_word_character(bytes[begin - 1])) --begin;
      begin += std::min(bytes.substr(begin, end - begin).find_first_of("ci"), end - begin);
      const std::string_view module = bytes.substr(std::min(begin + 1, end), end - std::min(begin + 1, end));
      const std::string_view member = bytes.substr(end + 1, next - end - 1);
      if (is_word(module) && is_word(member)) add_word(module, member);
      last = end + 1;
      end = next;
    }
    constexpr char short_text = '\x8c', memoize = '\x94', stack_global = '\x93';
    const auto text_at = [&](std::size_t& at) -> std::string_view {
      if (at + 2 > bytes.size() || bytes[at] != short_text) return {};
      const std::string_view text = bytes.substr(at + 2, static_cast<unsigned char>(bytes[at + 1]));
      at += 2 + text.size();
      if (at < bytes.size() && bytes[at] == memoize) ++at;
      return text;
    };
    for (std::size_t at = bytes.find(short_text); at != std::string_view::npos;
         at = bytes.find(short_text, at + 1)) {
      std::size_t next = at;
      const std::string_view module = text_at(next);
      if (!is_word(module)) continue;
      const std::string_view member = text_at(next);
      if (is_word(member) && next < bytes.size() && bytes[next] == stack_global) add_word(module, member);
    }
  }

  void add_word(std::string_view module, std::string_view member) {
    constexpr std::size_t min_bytes = 2, max_bytes = 256;  // shorter ones appear by chance
    const auto is_plausible = [](std::string_view word) {
      return word.size() >= min_bytes && word.size() <= max_bytes;
    };
    if (is_plausible(module) && is_plausible(member))
      add({.name = std::string(module) + "." + std::string(member)});
  }

  void add(const PickleName& name) {
    constexpr std::size_t max_names = 100'000;
    const auto [index, added] = indices_.try_emplace(name.name, found_.names.size());
    if (added && found_.names.size() == max_names) {
      indices_.erase(index);
      return note("too many names");
    }
    if (added) found_.names.push_back({.name = name.name, .understood = is_supported_name(name.name)});
    found_.names[index->second].called |= name.called;
  }

  bool take_budget(std::uint64_t bytes) {
    if (bytes > left_) note("it decompresses to too much to be searched");
    const bool fits = bytes <= left_;
    if (fits) left_ -= bytes;
    return fits;
  }

  void note(std::string_view problem) {
    if (found_.problem.empty()) found_.problem = problem;
  }

  const std::string& name_;
  std::uint64_t left_;  // bytes that may still be decompressed
  PickleScan found_;
  std::map<std::string, std::size_t> indices_;
};

}  // namespace

PickleScan scan_pickles(std::string_view bytes, const std::string& name, bool is_pickle) {
  return Scanner(bytes, name, is_pickle).take();
}

bool begins_like_pickle(std::string_view bytes) {
  constexpr std::string_view first_opcodes = "\x80(c]})NIJKLM";
  return !bytes.empty() && first_opcodes.find(bytes[0]) != std::string_view::npos;
}

bool is_legacy_magic(const PickleValue& value) {
  // As written by protocol 2 and later, or in decimal by earlier ones.
  return value.kind == PickleKind::big_integer &&
         (value.text == std::string_view("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10) ||
          value.text == "119547037146038801333356");
}

}  // namespace tandem
