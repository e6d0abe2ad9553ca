// The test program is also the program its tests start: as a rank it runs no test.
#pragma once

#include <string>
#include <vector>

namespace tandem {

int run_rank(const std::vector<std::string>& words);  // rank_process_test.cpp

}  // namespace tandem
