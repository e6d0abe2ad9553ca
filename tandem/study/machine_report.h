// Machine facts as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "tandem/device/machine.h"
#include "tandem/report/fact.h"
#include "tandem/text/table.h"

namespace tandem {

// For the header of a report.
std::vector<Fact> report_facts();

// For `tandem devices`: a table, or JSON {"cpu": {…}, "cuda": {"devices": […], …}}.
std::string devices_text(const MachineFacts& machine, const TextStyle& style = {});
std::string devices_json(const MachineFacts& machine);

}  // namespace tandem
