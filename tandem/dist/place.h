// Place: who a process is among the ranks of a run.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// One process of a run. Ranks are numbered from 0 to size − 1.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;    ///< among the ranks of this node
  int local_size = 1;    ///< ranks of this node
  int node = 0;          ///< number of the node
  std::string host;      ///< name of the node
  std::int64_t pid = 0;  ///< process on that node

  friend bool operator==(const Place&, const Place&) = default;
};

}  // namespace tandem
