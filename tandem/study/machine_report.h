// The machine as people and programs read it.
#pragma once

#include <string>
#include <vector>

#include "tandem/device/machine.h"
#include "tandem/report/fact.h"
#include "tandem/report/table.h"

namespace tandem {

// For the head of a report.
std::vector<Fact> report_facts();

// For `tandem devices`: a table, or JSON {"cpu": {…}, "cuda": {"devices": […], …}}.
std::string devices_text(const MachineFacts& machine, const TextStyle& style = {});
std::string devices_json(const MachineFacts& machine);

}  // namespace tandem
