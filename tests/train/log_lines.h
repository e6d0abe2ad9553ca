// log.csv as a comparison of runs needs it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/files/test_files.h"

namespace tandem {

// The lines of log.csv without the times.
inline std::string log_without_times(const std::filesystem::path& path) {
  std::istringstream lines(get_bytes(path));
  std::string all, line;
  std::vector<bool> kept;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string cell;
    const bool is_header = kept.empty();
    for (std::size_t column = 0; std::getline(cells, cell, ','); ++column) {
      if (is_header) kept.push_back(cell.find("second") == std::string::npos);
      if (kept[column]) all += cell + ",";
    }
    all += "\n";
  }
  return all;
}

}  // namespace tandem
