#include "tandem/report/study_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "report_fixture.h"
#include "tandem/report/json.h"

namespace tandem {
namespace {

TEST(StudyFields, KeysAndColumnsAreUnique) {
  std::set<std::string_view> keys;
  std::set<int> columns;
  for (const StudyField& field : study_fields) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_EQ(field.header.empty(), field.meaning.empty()) << field.key;
    if (field.header.empty()) continue;
    EXPECT_TRUE(columns.insert(field.column).second) << field.key;
  }
}

TEST(StudyFields, PairSharesItsCellWithAFigureWithoutColumn) {
  for (const StudyField* field = std::begin(study_fields); field != std::end(study_fields); ++field)
    if (field->style == CellStyle::range_pair || field->style == CellStyle::percent_pair ||
        field->style == CellStyle::points_pair) {
      ASSERT_NE(field + 1, std::end(study_fields));
      EXPECT_TRUE(field[1].header.empty()) << field[1].key;
      EXPECT_EQ(field[1].member.index(), 0u) << field[1].key;
      EXPECT_EQ(field[1].unit, field->unit);
    }
}

TEST(StudyFields, RowWithEveryFigure_HasEveryKeyAndColumn) {
  const StudyRow row{.case_name = "case",
                     .version = "version",
                     .device = "cpu",
                     .threads = 1,
                     .workers = 2,
                     .ranks = 4,
                     .basis = "modelled",
                     .epoch = 3,
                     .figures = {{"median_ms", 1},
                                 {"min_ms", 0.5},
                                 {"max_ms", 2},
                                 {"with_copies_ms", 3},
                                 {"speedup", 4},
                                 {"samples_per_s", 5},
                                 {"gb_per_s", 6},
                                 {"gflop_per_s", 7},
                                 {"share_of_peak", 0.5},
                                 {"max_error", 0},
                                 {"waited_ms", 8},
                                 {"efficiency", 0.25},
                                 {"plain", 0.9},
                                 {"plain_spread", 0.01},
                                 {"augmented", 0.92},
                                 {"augmented_spread", 0.02},
                                 {"lead", 0.02},
                                 {"lead_spread", 0.001},
                                 {"plain_ms", 9},
                                 {"augmented_ms", 10},
                                 {"without_exchange_ms", 1},
                                 {"exchange_ms", 11},
                                 {"exposed_ms", 2},
                                 {"hidden", 0.75},
                                 {"slowest_rank", 3},
                                 {"slowest_behind", 0.1}},
                     .engine = "engine",
                     .note = "note",
                     .failure = "failure"};
  StudyReport report;
  report.rows = {row};
  const std::string json = to_json_text(report);
  std::size_t at = 0;
  for (const StudyField& field : study_fields) {
    at = json.find(fmt::format("\"{}\":", field.key), at);
    ASSERT_NE(at, std::string::npos) << field.key;
  }
  std::vector<std::string> cells;
  for (const StudyField& column : study_columns({row})) cells.push_back(study_cell(row, column));
  EXPECT_EQ(cells, (std::vector<std::string>{"version",
                                             "cpu",
                                             "1",
                                             "2",
                                             "3",
                                             "90.00 ± 1.00 %",
                                             "92.00 ± 2.00 %",
                                             "+2.00 ± 0.10",
                                             "1.00 ms",
                                             "500 µs–2.00 ms",
                                             "3.00 ms",
                                             "×4.00",
                                             "5",
                                             "8.00 ms",
                                             "11.0 ms",
                                             "2.00 ms",
                                             "75.0 %",
                                             "25.0 %",
                                             "6.00",
                                             "7.00",
                                             "50.0 %",
                                             "note"}));
}

TEST(StudyRow, AbsentFigure_IsNaN) {
  StudyRow row{.case_name = "case", .version = "version", .device = "cpu"};
  EXPECT_FALSE(row.value("median_ms") > 0);
  EXPECT_EQ(study_cell(row, study_fields[3]), "");
  row.figures["median_ms"] = 2;
  EXPECT_EQ(row.value("median_ms"), 2);
  row.figures["median_ms"] = std::nullopt;
  EXPECT_FALSE(std::as_const(row).figures["median_ms"]);
}

}  // namespace
}  // namespace tandem
