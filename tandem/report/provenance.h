// Who made a report: version and commit, command, date, host, load and seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/report/fact.h"

namespace tandem {

// In display order. The load is the average number of running processes in the last minute, before this
// program adds its own: call it when the work begins.
std::vector<Fact> provenance(const std::string& command, std::uint64_t seed);

}  // namespace tandem
