// Sweeps of the correlation study over kernel sizes: the cases, and findings and plots from the rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

// "5" is 5x5. Throws Error for anything but one or two sizes from 1 to 65536.
KernelSize parse_kernel_size(std::string_view text);

// Every size with every kernel: "1024x1024 f32 3x3", "1024x1024 f32 5x5", …
std::vector<std::string> kernel_cases(const std::vector<std::string>& sizes,
                                      const std::vector<KernelSize>& kernels);

// Per size, how much longer each version takes with its largest kernel than with its smallest.
std::vector<std::string> kernel_findings(const std::vector<StudyRow>& rows);

// Per size with at least three kernels, the time and the share of the peak of each version over the kernel
// size.
std::vector<Plot> kernel_plots(const std::vector<StudyRow>& rows);

// Puts them before the report's plots, in place of the bars with the same figures.
void add_kernel_plots(StudyReport& report);

}  // namespace tandem
