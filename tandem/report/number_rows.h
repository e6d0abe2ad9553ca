// The lines of a CSV file of numbers, one at a time: the first has the names of the columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct NumberRows {
  std::vector<std::string> columns;
  std::vector<double> values;  // of the last row; not_measured where a field is empty

  // Takes the first line as names of columns and others as values. False for the first, for a row of another
  // length, as one that was cut off, and for text.
  bool set(std::string_view line);

  double at(std::string_view column) const;  // not_measured without such a column
  // A whole number from 1 on; 0 for anything else.
  std::int64_t whole_at(std::string_view column) const;
};

}  // namespace tandem
