// The test program is also the program its tests start: as a rank it runs no test.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// A rank of the group that its launcher made. words[1] is what it does: "check" all operations; "early": rank
// 1 ends before it connects; "differ": each sums another number of values; else sum, and after the second sum
// "return", "fail" or "exit" (rank 2), or go on until something happens ("sum"; "stop": with a limit of 2 s).
int run_rank(const std::vector<std::string>& words);

}  // namespace tandem
