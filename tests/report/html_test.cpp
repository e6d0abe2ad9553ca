#include "tandem/report/html.h"

#include <gtest/gtest.h>

#include <vector>

#include "report_fixture.h"
#include "tandem/report/page.h"
#include "tandem/report/provenance.h"

namespace tandem {
namespace {

TEST(Html, IsOneSelfContainedWellFormedFile) {
  const std::vector<StudyReport> reports{sample_report()};
  const std::string html = html_page(reports, "Report");
  EXPECT_EQ(html.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "<title>Report</title>"));
  EXPECT_TRUE(contains(html, "prefers-color-scheme:dark"));
  for (const char* outside : {"<script", "<link", "src=", "@import", "url("})
    EXPECT_FALSE(contains(html, outside));
  // The only address is the name of the SVG namespace, which nothing fetches.
  EXPECT_EQ(count(html, "http"), count(html, "http://www.w3.org/2000/svg"));
}

TEST(Html, Study_ShowsAllParts) {
  const std::vector<StudyReport> reports{sample_report()};
  const std::string html = html_page(reports, "Report");
  for (const char* part :
       {"Some CPU", "Element-wise maximum", "C[i][j] = max(A[i][j], B[i][j]).", "1000×1000 i32", "5.00 µs",
        "×500", "57.0 %", "width:57%", "Memory bandwidth is the limit.", "all versions agree"})
    EXPECT_TRUE(contains(html, part)) << part;
  EXPECT_EQ(count(html, "<svg"), 2 * static_cast<int>(reports[0].plots.size())) << "wide and narrow";
  EXPECT_EQ(count(html, "class=\"fastest\""), 2);
}

TEST(Html, CasesOfOneRow_AreAColumn) {
  StudyReport report = sample_report();
  EXPECT_EQ(count(html_page(std::vector{report}, "Report"), "scope=\"rowgroup\""), 2);
  report.rows = {report.rows[0], report.rows[2]};
  const std::string html = html_page(std::vector{report}, "Report");
  EXPECT_EQ(body_fault(html), "");
  EXPECT_EQ(count(html, "scope=\"rowgroup\""), 0);
  EXPECT_TRUE(contains(html, "<th scope=\"col\">case</th>"));
  EXPECT_EQ(count(html, "<td>1000×1000 i32</td>"), 1);
}

TEST(Html, PlotOfManyBars_IsNotPrinted) {
  StudyReport report = sample_report();
  report.plots = {{.title = "bars", .kind = PlotKind::bars, .categories = {"a", "b", "c", "d"}}};
  report.plots[0].series.resize(4, {.name = "version", .x = {}, .y = {1, 2, 3, 4}});
  EXPECT_EQ(count(html_page(std::vector{report}, "Report"), "<figure class=\"long\">"), 0);
  report.plots[0].series.push_back(report.plots[0].series[0]);
  EXPECT_EQ(count(html_page(std::vector{report}, "Report"), "<figure class=\"long\">"), 1);
}

TEST(Html, WideTable_PrintedOverBothColumns) {
  StudyReport report = sample_report();
  EXPECT_EQ(count(html_page(std::vector{report}, "Report"), "<div class=\"scroll wide\""), 1);
  for (StudyRow& row : report.rows) row.figures = {{"median_ms", 2.5}};
  EXPECT_EQ(count(html_page(std::vector{report}, "Report"), "<div class=\"scroll wide\""), 0);
}

TEST(Html, Provenance_IsShown) {
  StudyReport report = sample_report();
  report.provenance = provenance("tandem study 'max <'", 7);
  const std::string html = html_page(std::vector{report}, "Report");
  EXPECT_EQ(body_fault(html), "");
  for (const char* part :
       {"<dt>command</dt><dd>tandem study &#39;max &lt;&#39;</dd>", "<dt>version</dt>", "<dt>commit</dt>",
        "<dt>date</dt>", "<dt>host</dt>", "<dt>load</dt>", "<dt>seed</dt><dd>7</dd>"})
    EXPECT_TRUE(contains(html, part)) << part;
  for (const Fact& fact : report.provenance) EXPECT_FALSE(fact.value.empty()) << fact.name;
}

TEST(Html, VersionsOfTheTable_AreExplained) {
  StudyReport report = sample_report();
  report.versions = {{"reference", "plain <loops>"}, {"parallel", "not in this table"}, {"cuda", "tuned"}};
  const std::string html = html_page(std::vector{report}, "Report");
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "plain &lt;loops&gt;"));
  EXPECT_TRUE(contains(html, "<span class=\"dot c1\"></span>cuda</dt><dd>tuned</dd>"));
  EXPECT_FALSE(contains(html, "not in this table"));
}

TEST(Html, SeveralStudies_HaveContents) {
  const std::vector<StudyReport> reports{sample_report(), sample_report()};
  EXPECT_FALSE(contains(html_page(std::span(reports).first(1), "Report"), "<nav"));
  const std::string html = html_page(reports, "Report");
  EXPECT_EQ(body_fault(html), "");
  EXPECT_EQ(count(html, "href=\"#section-2\""), 1);
  EXPECT_EQ(count(html, "id=\"section-2\""), 1);
}

TEST(Html, MachineFacts_RepeatedOnlyWhenDifferent) {
  std::vector<StudyReport> reports{sample_report(), sample_report()};
  EXPECT_EQ(count(html_page(reports, "Report"), "<dl class=\"facts\">"), 1);
  reports[1].machine[0].value = "Another CPU";
  const std::string html = html_page(reports, "Report");
  EXPECT_EQ(count(html, "<dl class=\"facts\">"), 2);
  EXPECT_TRUE(contains(html, "Another CPU"));
}

TEST(Html, WrongRows_AreMarked) {
  std::vector<StudyReport> reports{sample_report()};
  reports[0].rows[1].agrees = false;
  const std::string html = html_page(reports, "Report");
  EXPECT_TRUE(contains(html, "1 result disagrees"));
  EXPECT_TRUE(contains(html, "<tr class=\"wrong\">"));
  EXPECT_TRUE(contains(html, "<li class=\"bad\">WRONG: cuda with 4 threads on cuda:0"));
  EXPECT_FALSE(contains(html, "✓"));
}

TEST(Html, AccuracyRows_NotCheckedForAgreement) {
  StudyReport report = sample_report();
  for (StudyRow& row : report.rows) row.figures["plain"] = 0.5;
  const std::string page = html_page(std::vector{report}, "Report");
  EXPECT_NE(page.find("1 study, 4 measurements."), std::string::npos);
  EXPECT_EQ(page.find("agree"), std::string::npos);
  EXPECT_EQ(page.find("fastest correct"), std::string::npos);
}

TEST(Html, TableOfManyEpochs_ScrollsInItsOwnBox) {
  StudyReport report = sample_report();
  report.rows.assign(15, {.case_name = "1,000 images", .epoch = 1, .figures = {{"plain", 0.5}}});
  EXPECT_FALSE(contains(html_page(std::vector{report}, "Report"), "class=\"scroll tall\""));
  report.rows.assign(41, report.rows.front());
  const std::string page = html_page(std::vector{report}, "Report");
  EXPECT_TRUE(contains(page, "class=\"scroll tall\""));
  EXPECT_EQ(count(page, "50.00 %"), 41) << "every epoch";
}

TEST(Html, EscapesEveryField) {
  const std::string evil = "<script>alert(\"x\")</script>'&";
  const auto escaped_count = [&](const std::string& html) {
    EXPECT_EQ(body_fault(html), "");
    EXPECT_FALSE(contains(html, "<script"));
    EXPECT_FALSE(contains(html, "alert(\""));
    return count(html, "&lt;script&gt;");
  };
  const auto with = [&](auto change) {
    StudyReport report = sample_report();
    change(report);
    report.plots = standard_plots(report.rows, 2);
    return html_page(std::span(&report, 1), "Report");
  };
  EXPECT_GE(escaped_count(html_page({}, evil)), 2);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.title = evil; })), 1);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.title.clear(), r.study = evil; })), 1);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.machine[0].name = evil; })), 1);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.machine[0].value = evil; })), 1);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.introduction = evil; })), 1);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.findings[0] = evil; })), 1);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.rows[1].case_name = evil; })), 2);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.rows[1].version = evil, r.rows[1].agrees = false; })),
            2);
  EXPECT_GE(escaped_count(with([&](StudyReport& r) { r.rows[1].device = evil, r.rows[1].agrees = false; })),
            2);
}

TEST(Html, PageShell_EscapesItsText) {
  const std::string evil = "<script>";
  const Page page{
      .title = evil,
      .summary = evil,
      .verdict = Verdict::none,
      .facts = {{evil, evil}},
      .sections = {{.title = evil, .body_html = "<p>markup</p>"}, {.title = evil, .body_html = {}}},
      .footer_html = "<p>foot</p>"};
  const std::string html = html_page(page);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_FALSE(contains(html, evil));
  EXPECT_EQ(count(html, "&lt;script&gt;"), 9);  // title twice, summary, fact, two links and two headings
  EXPECT_TRUE(contains(html, "<p>markup</p>"));
}

TEST(Html, EmptyReport_IsStillAPage) {
  EXPECT_EQ(body_fault(html_page(std::span<const StudyReport>{}, "Report")), "");
  const std::vector<StudyReport> reports(1);
  const std::string html = html_page(reports, "Report");
  EXPECT_EQ(body_fault(html), "");
  EXPECT_FALSE(contains(html, "✓"));
}

TEST(EscapeHtml, MarkupCharactersAndControls) {
  EXPECT_EQ(escape_html(R"(<a href="x">'&')"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
  EXPECT_EQ(escape_html(std::string_view("a\0b", 3)), "a b");
}

}  // namespace
}  // namespace tandem
