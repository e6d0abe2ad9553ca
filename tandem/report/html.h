// Studies as one HTML file that works offline. Each study has its introduction, findings, plots and table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tandem/report/study_report.h"

namespace tandem {

// The header shows the machine of the first study; a study from another machine shows its own. The footer
// shows the provenance of the first study.
std::string html_page(std::span<const StudyReport> reports, const std::string& title);

/// one_line() with & < > " ' escaped: safe as text and inside a quoted attribute, in HTML and in SVG.
std::string escape_html(std::string_view text);

}  // namespace tandem
