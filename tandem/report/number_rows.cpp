#include "tandem/report/number_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tandem/report/csv.h"
#include "tandem/report/epoch_record.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {

bool NumberRows::set(std::string_view line) {
  constexpr std::size_t max_name = 2000;
  if (columns.empty()) {
    columns = csv_fields(line);
    for (std::string& name : columns) name = one_line(std::string_view(name).substr(0, max_name));
    return false;
  }
  values.clear();
  while (true) {
    const std::size_t end = line.find(',');
    const std::string_view field = line.substr(0, end);
    const std::optional<double> value =
        field.empty() ? std::optional<double>(not_measured) : parse_number<double>(field);
    if (!value || values.size() == columns.size()) return false;
    values.push_back(*value);
    if (end == std::string_view::npos) return values.size() == columns.size();
    line.remove_prefix(end + 1);
  }
}

double NumberRows::at(std::string_view column) const {
  const auto found = std::ranges::find(columns, column);
  return found == columns.end() ? not_measured : values[static_cast<std::size_t>(found - columns.begin())];
}

std::int64_t NumberRows::whole_at(std::string_view column) const {
  constexpr double max = 1e15;
  const double value = at(column);
  return value >= 1 && value <= max && value == std::floor(value) ? static_cast<std::int64_t>(value) : 0;
}

}  // namespace tandem
