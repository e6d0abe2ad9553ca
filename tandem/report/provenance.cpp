#include "tandem/report/provenance.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "tandem/core/build_info.h"
#include "tandem/core/parallel.h"

namespace tandem {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string load_text() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return "unknown";
  return fmt::format("{:.2f} on {} CPU{}", load, usable_cpus(), usable_cpus() == 1 ? "" : "s");
}

}  // namespace

std::vector<Fact> provenance(const std::string& command, std::uint64_t seed) {
  return {{"command", command},
          {"version", std::string(build_info().version)},
          {"commit", std::string(build_info().commit)},
          {"date", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)))},
          {"host", host_name()},
          {"load", load_text()},
          {"seed", std::to_string(seed)}};
}

}  // namespace tandem
