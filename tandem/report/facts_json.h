// Facts as JSON objects, in their order. Only for .cpp files: the JSON library is heavy.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/report/fact.h"

namespace tandem {

inline nlohmann::ordered_json facts_json(const std::vector<Fact>& facts) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const Fact& fact : facts) {
    std::string name = fact.name;  // facts with the same name are all kept, numbered
    for (int i = 2; object.contains(name); ++i) name = fmt::format("{} {}", fact.name, i);
    object[name] = fact.value;
  }
  return object;
}

// Throws nlohmann::json::exception if a value is not text.
inline std::vector<Fact> parse_facts(const nlohmann::ordered_json& object) {
  std::vector<Fact> facts;
  for (const auto& [name, value] : object.items()) facts.push_back({name, value.get<std::string>()});
  return facts;
}

}  // namespace tandem
