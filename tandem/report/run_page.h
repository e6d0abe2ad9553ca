// The parts that the live page of runs and the report of a run share: curves that show their values, with
// their style and script. A report has its figures in the file; the live page asks its server.
#pragma once

#include <string>
#include <string_view>

#include "tandem/report/training_report.h"

namespace tandem {

// cmake/TandemEmbed.cmake writes the definitions.
extern const std::string_view embedded_run_style;  // run_page.css
extern const std::string_view embedded_charts;     // charts.js
extern const std::string_view embedded_timeline;   // timeline.js, which needs charts.js

// Where the script draws curves. `static_html` is shown in their place without scripts and on paper; the
// class "curves" is around all of it.
std::string curves_html(const std::string& static_html);

// Where the script draws a timeline.
std::string timeline_html();

// What the script of a report needs, as JSON: {"name", "validated_on", "curves", "steps", "timeline"}.
std::string run_data(const TrainingReport& report);

// The script of a report, which shows the data of its page.
std::string report_script();

}  // namespace tandem
