// Explanations as a sheet, as the data of a page, and as JSON.
#pragma once

#include <string>

#include "tandem/report/explain_page.h"
#include "tandem/train/explain/explain.h"

namespace tandem {

// Every photograph beside its map, with class, probability and file name, and a legend below.
Image explain_sheet(const ExplainedImages& explained, const ModelInfo& info);

// Without command and provenance.
ExplainReport explain_report(const ExplainedImages& explained, const ModelInfo& info,
                             ActivationMethod method);

// A JSON list of {"path", "class", "probability", "explained", "peak", "map", "covers": [x, y, width,
// height]} or {"path", "error"}. "map" is a list of rows with a maximum of 1, or of 0 if the peak is 0.
std::string explain_json(const ExplainedImages& explained, const ModelInfo& info);

}  // namespace tandem
