// What ranks tell each other at the start, and whether they fit together.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/dist/place.h"

namespace tandem {

// Texts by name, such as {"version", "0.1.0"}.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct Greeting {
  Place place;
  NamedTexts must_agree;       // the same on all ranks
  std::string process_domain;  // of the process number in `place` (process_end.h)
};

std::string encode(const Greeting& greeting);
// Error for text that encode() does not write.
Greeting decode(std::string_view text);

// Error with the first thing in which a rank differs from rank 0: "[group] ranks 0 (host n1) and 3 (host n4)
// differ in version: 0.1.0 and 0.2.0". Long texts are cut to where they differ.
void check_agreement(const std::vector<Greeting>& ranks);

// The ranks of the same host as `rank` whose ends it can see; not itself.
std::vector<int> visible_processes(const std::vector<Greeting>& ranks, int rank);

// The places of all ranks: nodes are numbered in the order of their first rank, and local ranks in the order
// of the ranks.
std::vector<Place> number_nodes(const std::vector<Greeting>& ranks);

}  // namespace tandem
