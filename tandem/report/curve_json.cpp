#include "tandem/report/curve_json.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace tandem {

nlohmann::ordered_json curve_json(const Curve& curve) {
  const auto rounded = [](double value) { return std::stod(fmt::format("{:.6g}", value)); };
  Curve shown(max_page_buckets);
  for (const CurvePoint& point : curve.points()) shown.add(point.x, point.y);
  std::vector<CurvePoint> kept = shown.points();
  if (!kept.empty() && kept.back().x < curve.last()->x) kept.push_back(*curve.last());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CurvePoint& point : kept) list.push_back({rounded(point.x), rounded(point.y)});
  return list;
}

nlohmann::ordered_json step_curves_json(const StepCurves& curves) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const StepField& field : step_fields) object[field.key] = curve_json(curves.of(field.member));
  return object;
}

}  // namespace tandem
