// Reads what a training run left in its folder, to compare it with other runs.
#pragma once

#include <filesystem>

#include "tandem/report/run_comparison.h"

namespace tandem {

// Throws Error if the folder has no config.toml and report.json of a run.
ComparedRun read_run(const std::filesystem::path& folder);

}  // namespace tandem
