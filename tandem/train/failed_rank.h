// Who says why a run of several ranks has failed. Rank 0 does, once. A launcher may kill it as soon as
// another rank ends, so the others wait for its end; if it does not come, because rank 0 is lost or busy, one
// of them says it.
#pragma once

#include <exception>
#include <string>

#include "tandem/dist/group.h"
#include "tandem/dist/launch.h"

namespace tandem {

inline constexpr double failure_grace_s = 2;  // how long a rank waits for the one that should say why

// Tells all ranks of the error that ends this one. Returns what this rank has to say, or "" when another one
// says it.
std::string end_with_error(Group& group, const std::exception& error, double grace_s = failure_grace_s);

// The same for a rank that has no group: when all ranks fail alike, the launcher ends this one meanwhile.
std::string end_with_error(const LaunchedRank& launched, const std::string& error,
                           double grace_s = failure_grace_s);

}  // namespace tandem
