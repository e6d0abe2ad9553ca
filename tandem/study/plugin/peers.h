// Other libraries as versions of a study: small Python plugins that the program carries with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/study/plugin/plugin_rows.h"

namespace tandem {

// "python", "numpy", "scipy", "numba", "opencv", "torch", "cupy".
std::vector<std::string> known_peers();

// The versions of the named peers whose packages are installed; those for a GPU only where there is one.
// Throws Error for a name that is not known, and when there is no Python with NumPy.
std::vector<PluginVersion> installed_peers(const std::vector<std::string>& names);

// The named peers that are not installed here.
std::vector<std::string> missing_peers(const std::vector<std::string>& names);

// What the versions of the named peers are, as for a legend.
std::vector<Fact> peer_legend(const std::vector<std::string>& names);

}  // namespace tandem
