#include "tandem/report/step_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"

namespace tandem {

std::string steps_csv_header() {
  std::string text = "step,epoch";
  for (const StepField& field : step_fields) text += fmt::format(",{}", field.key);
  return text + "\n";
}

std::string steps_csv_row(const StepRecord& record) {
  std::string text = fmt::format("{},{}", record.step, record.epoch);
  for (const StepField& field : step_fields) {
    const double value = record.*field.member;
    text += ',';
    if (!std::isfinite(value)) continue;
    text += field.decimals < 0 ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, field.decimals);
  }
  return text + "\n";
}

StepRecord step_record(const NumberRows& rows) {
  StepRecord record{.step = rows.whole_at("step"), .epoch = rows.whole_at("epoch")};
  for (const StepField& field : step_fields) record.*field.member = rows.at(field.key);
  return record;
}

StepCurves::StepCurves(std::size_t max_buckets) {
  curves_.fill(Curve(max_buckets));
}

void StepCurves::add(const StepRecord& record) {
  for (std::size_t i = 0; i < step_fields.size(); ++i)
    curves_[i].add(static_cast<double>(record.step), record.*step_fields[i].member);
}

const Curve& StepCurves::of(double StepRecord::*member) const {
  const auto found = std::ranges::find(step_fields, member, &StepField::member);
  expect(found != step_fields.end());
  return curves_[static_cast<std::size_t>(found - step_fields.begin())];
}

bool StepCurves::empty() const {
  return std::ranges::all_of(curves_, [](const Curve& curve) { return curve.empty(); });
}

}  // namespace tandem
