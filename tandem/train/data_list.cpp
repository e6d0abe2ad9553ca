#include "tandem/train/data_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/read_file.h"
#include "tandem/files/sha256.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using nlohmann::json;

// Bytes that are not UTF-8 are replaced, here and in what is compared with it.
std::string to_json(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string samples_text(const std::vector<DataList::Sample>& samples) {
  std::string text;
  for (const DataList::Sample& sample : samples)
    text += fmt::format("{}\n [{},{}]", text.empty() ? "" : ",", sample.label, to_json(sample.name));
  return text;
}

std::vector<DataList::Sample> parse_samples(const json& rows) {
  std::vector<DataList::Sample> samples;
  for (const json& row : rows)
    samples.push_back({row.at(0).get<std::int32_t>(), row.at(1).get<std::string>()});
  return samples;
}

struct Place {
  const char* set;
  std::string class_name;
};

std::map<std::string, Place> places_of(const DataList& list) {
  std::map<std::string, Place> places;
  const auto add = [&](const char* set, const std::vector<DataList::Sample>& samples) {
    for (const DataList::Sample& sample : samples)
      places[sample.name] = {set, list.classes.at(static_cast<std::size_t>(sample.label))};
  };
  add("training", list.training);
  add("validation", list.validation);
  return places;
}

std::string class_difference(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i)
    if (before[i] != now[i])
      return fmt::format("class {} was '{}', is '{}'", i, one_line(before[i]), one_line(now[i]));
  if (before.size() == now.size()) return "";
  return before.size() < now.size()
             ? fmt::format("class {} is new: '{}'", before.size(), one_line(now[before.size()]))
             : fmt::format("class {} is missing: '{}'", now.size(), one_line(before[now.size()]));
}

std::string sample_difference(const DataList& before, const DataList& now) {
  const std::map<std::string, Place> old_places = places_of(before), new_places = places_of(now);
  const auto named = [](const std::string& name) { return fmt::format("photograph {}", one_line(name)); };
  for (const auto& [name, place] : new_places)
    if (!old_places.contains(name)) return named(name) + " is new";
  for (const auto& [name, place] : old_places)
    if (!new_places.contains(name)) return named(name) + " is missing";
  for (const auto& [name, place] : new_places) {
    const Place& old_place = old_places.at(name);
    if (place.class_name != old_place.class_name)
      return fmt::format("{} was of class '{}', is of '{}'", named(name), one_line(old_place.class_name),
                         one_line(place.class_name));
    if (std::string_view(place.set) != old_place.set)
      return fmt::format("{} was a {} image, is a {} image", named(name), old_place.set, place.set);
  }
  return "";
}

}  // namespace

std::string DataList::to_text() const {
  const auto listed = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + to_json(name);
    return text;
  };
  return fmt::format(
      "{{\"classes\": [{}],\n\"training_count\": {}, \"validation_count\": {}, \"labels\": {},\n"
      "\"training\": [{}],\n\"validation\": [{}],\n\"unreadable\": [{}]}}\n",
      listed(classes), training_count, validation_count, to_json(labels_digest), samples_text(training),
      samples_text(validation), listed(unreadable));
}

std::string DataList::digest() const {
  DataList readable = *this;
  readable.unreadable.clear();
  return sha256_hex(readable.to_text());
}

DataList parse_data_list(const std::string& text, const std::string& name) {
  DataList list;
  try {
    const json parsed = json::parse(text);
    list.classes = parsed.at("classes").get<std::vector<std::string>>();
    list.training_count = parsed.at("training_count").get<std::int64_t>();
    list.validation_count = parsed.at("validation_count").get<std::int64_t>();
    list.labels_digest = parsed.at("labels").get<std::string>();
    list.training = parse_samples(parsed.at("training"));
    list.validation = parse_samples(parsed.at("validation"));
    list.unreadable = parsed.at("unreadable").get<std::vector<std::string>>();
  } catch (const json::exception&) {
    fail("[train] {}: expected the list of a run's data, got something else", name);
  }
  const auto count = static_cast<std::int64_t>(list.classes.size());
  for (const auto* const samples : {&list.training, &list.validation})
    for (const DataList::Sample& sample : *samples)
      check(sample.label >= 0 && sample.label < count, "[train] {}: expected labels from 0 to {}, got {}",
            name, count - 1, sample.label);
  return list;
}

DataList list_data(const TrainingData& data) {
  DataList list{.classes = data.train.classes,
                .training = {},
                .validation = {},
                .unreadable = {},
                .training_count = data.train.count(),
                .validation_count = data.validation.count(),
                .labels_digest = {}};
  const std::vector<std::int32_t> validation = data.validation.labels.to_vector<std::int32_t>();
  const bool has_names = dynamic_cast<const ImageDataset*>(data.train.dataset.get()) == nullptr;
  Sha256 labels;
  const auto add_label = [&](std::int32_t label) { labels.update(std::as_bytes(std::span(&label, 1))); };
  for (std::int64_t i = 0; i < list.training_count; ++i) {
    const std::int32_t label = data.train.dataset->label(i);
    add_label(label);
    if (has_names) list.training.push_back({label, data.train.dataset->describe(i)});
  }
  for (std::size_t i = 0; i < validation.size(); ++i) {
    add_label(validation[i]);
    if (has_names && data.validation_names.size() == validation.size())
      list.validation.push_back({validation[i], data.validation_names[i]});
  }
  list.labels_digest = labels.hex_digest();
  for (const SkippedSample& sample : data.bad)
    if (sample.sample >= 0) list.unreadable.push_back(sample.name);
  return parse_data_list(list.to_text(), "data.json");  // as it will be read
}

std::string listed_name(const std::string& name) {
  return json::parse(to_json(name)).get<std::string>();
}

std::string first_difference(const DataList& before, const DataList& now) {
  if (std::string text = class_difference(before.classes, now.classes); !text.empty()) return text;
  if (std::string text = sample_difference(before, now); !text.empty()) return text;
  if (before.training_count != now.training_count)
    return fmt::format("there were {} training images, now there are {}", before.training_count,
                       now.training_count);
  if (before.validation_count != now.validation_count)
    return fmt::format("there were {} validation images, now there are {}", before.validation_count,
                       now.validation_count);
  return before.digest() == now.digest() ? "" : "labels or their order differ";
}

std::string data_difference(const TensorFile& checkpoint, const std::filesystem::path& file,
                            const DataList& now) {
  const auto digest = checkpoint.metadata.find("tandem.data_digest");
  if (digest == checkpoint.metadata.end() || digest->second == now.digest()) return "";
  std::string difference;
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    constexpr std::uint64_t max_bytes = std::uint64_t{1} << 32;
    difference = first_difference(parse_data_list(read_file("train", file, max_bytes), file.string()), now);
  }
  return difference.empty() ? "it is not the data of the checkpoint" : difference;
}

}  // namespace tandem
