#include "tandem/study/grade/profile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "tandem/core/check.h"
#include "tandem/core/did_you_mean.h"
#include "tandem/files/read_file.h"
#include "tandem/files/sha256.h"
#include "tandem/files/toml.h"
#include "tandem/study/grade/task.h"

namespace tandem {

// Written by cmake/TandemEmbed.cmake.
extern const std::string_view embedded_profile_perceptron_and_kernels,
    embedded_profile_augmentation_and_correlation;

namespace {

struct ShippedProfile {
  std::string_view name, text;
};

std::array<ShippedProfile, 2> shipped_profiles() {
  return {{{"perceptron-and-kernels", embedded_profile_perceptron_and_kernels},
           {"augmentation-and-correlation", embedded_profile_augmentation_and_correlation}}};
}

// Reads the entries of one table. Every error names the line and the key; done() refuses keys nobody read.
class TableReader {
 public:
  TableReader(const TomlTable& document, const TomlTable& table, std::string prefix)
      : document_(document), table_(table), prefix_(std::move(prefix)) {}

  template <class... Args>
  [[noreturn]] void refuse(const TomlEntry& entry, fmt::format_string<Args...> text, Args&&... args) const {
    fail("[profile] {}: {}{}: {}", document_.where(entry), prefix_, entry.key,
         fmt::format(text, std::forward<Args>(args)...));
  }

  const TomlEntry* find(const std::string& key) {
    known_.push_back(key);
    return table_.find(key);
  }

  const TomlEntry& get(const std::string& key) {
    const TomlEntry* const entry = find(key);
    check(entry != nullptr, "[profile] {}: expected a key '{}{}'", document_.name, prefix_, key);
    return *entry;
  }

  const std::string& text(const TomlEntry& entry, const char* what) const {
    const auto* const value = std::get_if<std::string>(&entry.value);
    if (!value || value->empty()) refuse(entry, "expected {}, got {}", what, plain_text(entry.value));
    return *value;
  }

  // A number in [min, max].
  double number(const TomlEntry& entry, double min, double max) const {
    const auto* const whole = std::get_if<std::int64_t>(&entry.value);
    const auto* const real = std::get_if<double>(&entry.value);
    const double value = whole ? static_cast<double>(*whole) : real ? *real : std::nan("");
    if (!(value >= min && value <= max))
      refuse(entry, "expected a number from {} to {}, got {}", min, max, plain_text(entry.value));
    return value;
  }
  double number(const std::string& key, double otherwise, double min, double max) {
    const TomlEntry* const entry = find(key);
    return entry ? number(*entry, min, max) : otherwise;
  }

  std::int64_t whole(const TomlEntry& entry, std::int64_t min, std::int64_t max) const {
    const auto* const value = std::get_if<std::int64_t>(&entry.value);
    if (!value || *value < min || *value > max)
      refuse(entry, "expected a whole number from {} to {}, got {}", min, max, plain_text(entry.value));
    return *value;
  }
  std::int64_t whole(const std::string& key, std::int64_t otherwise, std::int64_t min, std::int64_t max) {
    const TomlEntry* const entry = find(key);
    return entry ? whole(*entry, min, max) : otherwise;
  }

  std::vector<std::string> texts(const TomlEntry& entry) const {
    std::vector<std::string> all;
    const auto* const list = std::get_if<TomlList>(&entry.value);
    if (!list) refuse(entry, "expected a list of texts, got {}", plain_text(entry.value));
    for (const TomlValue& value : *list) {
      const auto* const one = std::get_if<std::string>(&value);
      if (!one || one->empty()) refuse(entry, "expected texts, got {}", plain_text(value));
      if (std::ranges::find(all, *one) != all.end()) refuse(entry, "'{}' is there twice", *one);
      all.push_back(*one);
    }
    return all;
  }

  // The tables of [name] or [[name]].
  const TomlTable* table(const std::string& key) {
    const TomlEntry* const entry = find(key);
    if (!entry) return nullptr;
    const auto* const value = std::get_if<TomlTable>(&entry->value);
    if (!value) refuse(*entry, "expected a table, got {}", plain_text(entry->value));
    return value;
  }

  void done() const {
    for (const TomlEntry& entry : table_.entries)
      if (std::ranges::find(known_, entry.key) == known_.end())
        fail("[profile] {}: unknown key '{}{}', expected one of {}{}", document_.where(entry), prefix_,
             toml_key(entry.key), fmt::join(known_, ", "), did_you_mean(entry.key, known_));
  }

 private:
  const TomlTable& document_;
  const TomlTable& table_;
  std::string prefix_;
  std::vector<std::string> known_;
};

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

std::string plain_name(const TableReader& reader, const TomlEntry& entry) {
  const std::string& name = reader.text(entry, "a name");
  if (!is_plain_name(name))
    reader.refuse(entry, "expected at most 64 of the characters a-z, 0-9, - and _, got '{}'", name);
  return name;
}

void read_curve(SpeedCurve& curve, const TomlTable& document, const TomlTable& table) {
  TableReader reader(document, table, "curve.");
  curve.full = reader.number("full", curve.full, 0.01, 1e6);
  curve.max_spread = reader.number("max_spread", curve.max_spread, 0.01, 10);
  if (const TomlEntry* const zero = reader.find("zero")) {
    curve.zero = reader.number(*zero, 0.01, 1e6);
    if (!(curve.zero > curve.full))
      reader.refuse(*zero, "expected more than {} (full), got {}", curve.full, curve.zero);
  } else {
    check(curve.zero > curve.full, "[profile] {}: curve.full: expected less than {} (zero), got {}",
          document.name, curve.zero, curve.full);
  }
  reader.done();
}

void read_limits(GradeLimits& limits, const TomlTable& document, const TomlTable& table) {
  TableReader reader(document, table, "limits.");
  limits.seconds = reader.number("seconds", limits.seconds, 1, 1e6);
  limits.call_seconds = reader.number("call_seconds", limits.call_seconds, 0.01, 1e4);
  limits.compile_seconds = static_cast<int>(reader.whole("compile_seconds", limits.compile_seconds, 1, 3600));
  limits.memory_mb = reader.whole("memory_mb", limits.memory_mb, 64, 1 << 20);
  reader.done();
}

Version read_version(TableReader& reader, const std::string& key, Version otherwise,
                     const std::vector<std::string>& known) {
  const TomlEntry* const entry = reader.find(key);
  if (!entry) return otherwise;
  const std::string& name = reader.text(*entry, "a version");
  if (std::ranges::find(known, name) == known.end())
    reader.refuse(*entry, "expected one of {}, got '{}'", fmt::join(known, ", "), name);
  return parse_version(name);
}

void read_speed(GradePart& part, TableReader& reader, const GradeTask& task) {
  part.threads = static_cast<int>(reader.whole("threads", part.threads, 0, 4096));
  const TomlEntry* const timed = reader.find("timed");
  if (timed) part.timed = reader.texts(*timed);
  part.speed = reader.number("speed", part.timed.empty() ? 0 : 0.5, 0, 1);
  for (const std::string& name : part.timed)
    if (std::ranges::find(part.cases, name) == part.cases.end())
      reader.refuse(*timed, "expected some of the part's cases, got '{}'", name);
  part.reference = read_version(reader, "reference", part.reference, {"reference", "simd", "parallel"});
  part.cuda_reference = read_version(reader, "cuda_reference", part.cuda_reference, {"cuda-simple", "cuda"});
  if (timed && !task.can_be_timed) reader.refuse(*timed, "the task {} is not timed", task.name);
  check(part.timed.empty() == (part.speed == 0),
        "[profile] part {}: expected timed cases and points for speed, or none of both, got {} cases and a "
        "share of {}",
        part.name, part.timed.size(), part.speed);
}

GradePart read_part(const TomlTable& document, const TomlTable& table) {
  TableReader reader(document, table, "part.");
  GradePart part;
  part.name = plain_name(reader, reader.get("name"));
  part.title = reader.text(reader.get("title"), "a title");
  const TomlEntry* const task_entry = reader.find("task");
  part.task = task_entry ? reader.text(*task_entry, "a task") : part.name;
  const GradeTask* const task = grade_tasks().find(part.task);
  if (!task) {
    if (task_entry) reader.refuse(*task_entry, "{}", grade_tasks().unknown(part.task));
    fail("[profile] {}: part {}: expected a key 'task', because no task has this name", document.name,
         part.name);
  }
  part.weight = reader.number(reader.get("weight"), 0.001, 1e6);
  const TomlEntry& cases = reader.get("cases");
  part.cases = reader.texts(cases);
  if (part.cases.empty()) reader.refuse(cases, "expected at least one case, got none");
  for (const std::string& name : part.cases) {
    try {
      task->make(name);
    } catch (const Error& error) {
      reader.refuse(cases, "{}", error.what());
    }
  }
  read_speed(part, reader, *task);
  if (const TomlEntry* const forbidden = reader.find("forbidden")) part.forbidden = reader.texts(*forbidden);
  if (const TomlEntry* const launch = reader.find("launch")) part.launch = reader.texts(*launch);
  reader.done();
  return part;
}

}  // namespace

double GradeProfile::total() const {
  double sum = 0;
  for (const GradePart& part : parts) sum += part.weight;
  return sum;
}

GradeProfile parse_profile(std::string_view text, const std::string& name) {
  const TomlTable document = parse_toml(text, name);
  TableReader reader(document, document, "");
  GradeProfile profile;
  profile.hash = sha256_hex(text);
  profile.name = plain_name(reader, reader.get("name"));
  profile.title = reader.text(reader.get("title"), "a title");
  if (const TomlEntry* const seed = reader.find("seed"))
    profile.seed =
        static_cast<std::uint64_t>(reader.whole(*seed, 0, std::numeric_limits<std::int64_t>::max()));
  if (const TomlTable* const curve = reader.table("curve")) read_curve(profile.curve, document, *curve);
  if (const TomlTable* const limits = reader.table("limits")) read_limits(profile.limits, document, *limits);
  const TomlEntry& parts = reader.get("part");
  const auto* const list = std::get_if<TomlList>(&parts.value);
  if (!list || list->empty()) reader.refuse(parts, "expected tables [[part]]");
  std::set<std::string> names;
  for (const TomlValue& value : *list) {
    const auto* const table = std::get_if<TomlTable>(&value);
    if (!table) reader.refuse(parts, "expected tables [[part]]");
    profile.parts.push_back(read_part(document, *table));
    if (!names.insert(profile.parts.back().name).second)
      reader.refuse(parts, "the part '{}' is there twice", profile.parts.back().name);
  }
  reader.done();
  return profile;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const ShippedProfile& one : shipped_profiles()) names.emplace_back(one.name);
  return names;
}

std::string_view shipped_profile(std::string_view name) {
  for (const ShippedProfile& one : shipped_profiles())
    if (one.name == name) return one.text;
  const std::vector<std::string> names = profile_names();
  fail("[profile] expected {} or a .toml file, got '{}'{}", fmt::join(names, ", "), name,
       did_you_mean(name, names));
}

GradeProfile read_profile(const std::string& name_or_path) {
  if (!name_or_path.ends_with(".toml"))
    return parse_profile(shipped_profile(name_or_path), name_or_path + ".toml");
  constexpr std::uint64_t max_bytes = 1 << 20;
  return parse_profile(read_file("profile", name_or_path, max_bytes), name_or_path);
}

}  // namespace tandem
