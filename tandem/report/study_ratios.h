// How many times as fast any two versions of a case are, as tables.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_row.h"

namespace tandem {

// One table per case, closed until it is asked for: the version of a row is that many times as fast as the
// version of the column. Cases with fewer than three measured versions have none: the main table shows them.
std::string ratios_html(const std::vector<StudyRow>& rows);

}  // namespace tandem
