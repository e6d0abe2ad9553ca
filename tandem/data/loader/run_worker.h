// The entry point of worker processes.
#pragma once

#include <optional>

namespace tandem {

/// Worker processes are this program, started again by a loader. Call this first thing in main(), after
/// register_dataset_factory(): in a worker it does the work and returns the exit status, which main()
/// returns; otherwise it returns nothing.
///     if (const auto status = tandem::run_worker_if_asked(argc, argv)) return *status;
std::optional<int> run_worker_if_asked(int argc, char** argv);

}  // namespace tandem
