// The Python that runs plugins written in it.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// The words of the command that runs plugin_host.py, without its arguments. The interpreter is $TANDEM_PYTHON
// or the first python3 in PATH that has NumPy. Throws Error when there is none.
const std::vector<std::string>& python_host_command();

}  // namespace tandem
