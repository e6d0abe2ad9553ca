// One thing worth knowing about where a report was made: {"CPU", "Neoverse-V2"}, {"cores", "2"}.
#pragma once

#include <string>

namespace tandem {

struct Fact {
  std::string name;
  std::string value;
};

}  // namespace tandem
