// A named property of the machine or the run that produced a report: {"CPU", "Neoverse-V2"}, {"cores", "2"}.
#pragma once

#include <string>

namespace tandem {

struct Fact {
  std::string name;
  std::string value;
};

}  // namespace tandem
