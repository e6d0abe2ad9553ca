// Curves as JSON for pages. Only for .cpp files: the JSON library is heavy.
#pragma once

#include <nlohmann/json.hpp>

#include "tandem/report/step_record.h"

namespace tandem {

// [[x, y], …] with six digits, which is more than a screen shows.
nlohmann::ordered_json curve_json(const Curve& curve);

// {"loss": [[x, y], …], …}
nlohmann::ordered_json step_curves_json(const StepCurves& curves);

}  // namespace tandem
