#include "tandem/train/run_status.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<RunState, const char*>, 4> state_names{{{RunState::running, "running"},
                                                                       {RunState::finished, "finished"},
                                                                       {RunState::stopped, "stopped"},
                                                                       {RunState::failed, "failed"}}};

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t count_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return 0;
  return std::max<std::int64_t>(found->get<std::int64_t>(), 0);
}

}  // namespace

std::string to_json_text(const RunStatus& status) {
  const auto state = std::ranges::find(state_names, status.state, &std::pair<RunState, const char*>::first);
  nlohmann::ordered_json object{{"state", state->second},
                                {"device", status.device},
                                {"engine", status.engine},
                                {"validated_on", status.validated_on},
                                {"epochs", status.epochs},
                                {"steps_per_epoch", status.steps_per_epoch},
                                {"samples_per_epoch", status.samples_per_epoch},
                                {"warnings", json::array()}};
  if (status.test_accuracy) {
    object["test_accuracy"] = *status.test_accuracy;
    object["tested_on"] = status.tested_on;
  }
  if (!status.message.empty()) object["message"] = one_line(status.message);
  for (const std::string& warning : status.warnings) object["warnings"].push_back(one_line(warning));
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<RunStatus> parse_run_status(std::string_view text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const std::string name = text_at(object, "state");
  const auto state = std::ranges::find(state_names, name, [](const auto& one) { return one.second; });
  if (state == state_names.end()) return std::nullopt;
  RunStatus status{.state = state->first,
                   .message = text_at(object, "message"),
                   .device = text_at(object, "device"),
                   .engine = text_at(object, "engine"),
                   .validated_on = text_at(object, "validated_on"),
                   .epochs = count_at(object, "epochs"),
                   .steps_per_epoch = count_at(object, "steps_per_epoch"),
                   .samples_per_epoch = count_at(object, "samples_per_epoch"),
                   .test_accuracy = {},
                   .tested_on = text_at(object, "tested_on"),
                   .warnings = {}};
  if (const auto accuracy = object.find("test_accuracy"); accuracy != object.end() && accuracy->is_number())
    status.test_accuracy = accuracy->get<double>();
  if (const auto warnings = object.find("warnings"); warnings != object.end() && warnings->is_array())
    for (const json& warning : *warnings)
      if (warning.is_string()) status.warnings.push_back(warning.get<std::string>());
  return status;
}

}  // namespace tandem
