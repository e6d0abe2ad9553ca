#include "tandem/report/study_ratios.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

StudyRow row(const std::string& version, double median_ms) {
  return {.case_name = "case", .version = version, .device = "cpu", .figures = {{"median_ms", median_ms}}};
}

TEST(StudyRatios, AnyTwoVersions_HaveARatio) {
  const std::string html = ratios_html({row("slow", 8), row("mine & yours", 2), row("fast", 1)});
  // Of the row over the column.
  EXPECT_NE(html.find("<tr><td>slow</td><td class=\"number\"></td><td class=\"number\">×0.250</td>"
                      "<td class=\"number\">×0.125</td></tr>"),
            std::string::npos)
      << html;
  EXPECT_NE(html.find("<tr><td>mine &amp; yours</td><td class=\"number\">×4.00</td><td class=\"number\"></td>"
                      "<td class=\"number\">×0.500</td></tr>"),
            std::string::npos)
      << html;
}

TEST(StudyRatios, WrongVersions_AreLeftOut) {
  StudyRow wrong = row("wrong", 1);
  wrong.agrees = false;
  EXPECT_EQ(ratios_html({row("a", 8), row("b", 2), wrong}), "");
  EXPECT_EQ(ratios_html({row("a", 8), row("b", 2), row("c", 3), wrong}).find("wrong"), std::string::npos);
}

}  // namespace
}  // namespace tandem
