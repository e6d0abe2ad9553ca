#include "tandem/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tandem/report/curve_json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json epoch_curve(const TrainingReport& report, double EpochRecord::*member) {
  Curve curve;
  for (const EpochRecord& record : report.epochs) curve.add(record.epoch, record.*member);
  return curve_json(curve);
}

}  // namespace

std::string curves_html(const std::string& static_html) {
  const std::string instead =
      static_html.empty() ? "" : fmt::format("<div class=\"static\">\n{}</div>\n", static_html);
  return fmt::format(R"(<div class="curves">
<div class="bar needs-script" id="chart-bar">
<span><label for="axis">Over</label> <select id="axis"><option value="epochs">epochs</option><option value="steps">steps</option></select></span>
<span><label for="smooth">Smoothing</label> <input id="smooth" type="range" min="0" max="0.98" step="0.02" value="0"/> <output id="smooth-value" for="smooth">0</output></span>
<span><input id="log" type="checkbox"/> <label for="log">Logarithmic loss</label></span>
</div>
<div class="charts" id="charts"></div>
{}<div id="live" class="unseen" aria-live="polite"></div>
</div>
)",
                     instead);
}

std::string timeline_html() {
  return R"(<p class="static">The script of this page draws it; the file given to --trace has it for Perfetto.</p>
<div class="needs-script">
<div class="bar">
<span class="hidden"><label for="timeline-run">Run</label> <select id="timeline-run"></select></span>
<button type="button" id="timeline-in">Zoom in</button><button type="button" id="timeline-out">Zoom out</button>
<button type="button" id="timeline-earlier">Earlier</button><button type="button" id="timeline-later">Later</button>
</div>
<div class="chart timeline">
<div class="key" id="timeline-legend"></div>
<svg id="timeline" tabindex="0" role="img" aria-label="Timeline"></svg>
<div class="values quiet" id="timeline-value"></div>
</div>
<details class="note"><summary>The timeline as a table</summary>
<div class="scroll tall" tabindex="0" role="region" aria-label="Timeline as a table"><table>
<thead><tr><th scope="col">lane</th><th scope="col">what</th><th class="number" scope="col">times</th><th class="number" scope="col">total</th><th class="number" scope="col">of the time</th></tr></thead>
<tbody id="timeline-rows"></tbody></table></div></details>
</div>
)";
}

std::string run_data(const TrainingReport& report) {
  Json curves{{"train_loss", epoch_curve(report, &EpochRecord::train_loss)},
              {"val_loss", epoch_curve(report, &EpochRecord::val_loss)},
              {"train_accuracy", epoch_curve(report, &EpochRecord::train_accuracy)},
              {"val_accuracy", epoch_curve(report, &EpochRecord::val_accuracy)}};
  if (has_several_learning_rates(report))
    curves["learning_rate"] = epoch_curve(report, &EpochRecord::learning_rate);
  Json data{{"name", report.title},
            {"validated_on", report.val_name},
            {"curves", std::move(curves)},
            {"steps", step_curves_json(report.steps)}};
  if (!report.timeline.empty()) {
    Json timeline = Json::parse(report.timeline, nullptr, false);
    if (!timeline.is_discarded()) data["timeline"] = std::move(timeline);
  }
  return data.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string report_script() {
  return std::string(embedded_charts) + std::string(embedded_timeline) +
         "start_report(JSON.parse(get(\"data\").textContent));\n";
}

}  // namespace tandem
