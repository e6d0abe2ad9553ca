// What a run says about itself in status.json, for those who watch it: rewritten when it starts, warns and
// ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class RunState { running, finished, stopped, failed };

struct RunStatus {
  RunState state = RunState::running;
  std::string message;  // why it failed
  std::string device;
  std::string engine;
  std::string validated_on = "validation";  // name of the data the val figures are measured on
  std::int64_t epochs = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t samples_per_epoch = 0;
  std::optional<double> test_accuracy;  // of the kept model, at the end
  std::string tested_on;                // name of the data of test_accuracy
  std::vector<std::string> warnings;    // oldest first

  bool operator==(const RunStatus&) const = default;
};

std::string to_json_text(const RunStatus& status);

// Nullopt if the text is not that of a status. Counts below 0 become 0.
std::optional<RunStatus> parse_run_status(std::string_view text);

}  // namespace tandem
