#include "tandem/report/csv.h"

#include <gtest/gtest.h>

#include <limits>

#include "report_fixture.h"

namespace tandem {
namespace {

TEST(Csv, CsvField_QuotesOnlyWhereRequired) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field(" x"), "\" x\"");
}

TEST(Csv, CsvFields_UndoCsvField) {
  const std::vector<std::string> texts{"a", "", "b,c", "\"quoted\"", " x "};
  std::string line;
  for (const std::string& text : texts) line += (line.empty() ? "" : ",") + csv_field(text);
  EXPECT_EQ(csv_fields(line), texts);
  EXPECT_EQ(csv_fields(""), (std::vector<std::string>{""}));
  EXPECT_EQ(csv_fields("a,\"b,c"), (std::vector<std::string>{"a", "b,c"}));
}

TEST(Csv, OneLinePerRow_AbsentFiguresEmpty) {
  StudyReport report = sample_report();
  report.rows.resize(2);
  report.rows[0].case_name = "image 3×3, kernel 1×1";
  report.rows[0].figures["max_ms"] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      to_csv_text(std::span(&report, 1)),
      "study,case,version,device,threads,median_ms,min_ms,max_ms,with_copies_ms,speedup,gb_per_s,gflop_per_s,"
      "share_of_peak,agrees,max_error\n"
      "max,\"image 3×3, kernel 1×1\",reference,cpu,,2.5,2.25,,,,,,,true,\n"
      "max,1000×1000 i32,cuda,cuda:0,4,0.005,0.0045,0.0065,0.6,500,2400,200,0.57,true,0\n");
}

}  // namespace
}  // namespace tandem
