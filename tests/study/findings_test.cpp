// Findings for synthetic rows.
#include "tandem/study/findings.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using Sentences = std::vector<std::string>;

StudyRow row(const char* version, double ms, std::optional<double> with_copies_ms = {}) {
  return {.case_name = "8x8 f32",
          .version = version,
          .device = "cpu",
          .figures = {{"median_ms", ms}, {"with_copies_ms", with_copies_ms}}};
}

// A row whose repetitions took from min_ms to max_ms.
StudyRow row_between(const char* version, double min_ms, double median_ms, double max_ms) {
  StudyRow made = row(version, median_ms);
  made.figures["min_ms"] = min_ms;
  made.figures["max_ms"] = max_ms;
  return made;
}

constexpr int cpus = 4;

Sentences findings_of(const std::vector<StudyRow>& rows) {
  return general_findings(rows, cpus);
}

TEST(Findings, NoRows_GiveNoFindings) {
  EXPECT_EQ(findings_of({}), Sentences{});
}

TEST(Findings, Simd_IsComparedWithScalarLoops) {
  EXPECT_EQ(findings_of({row("reference", 30), row("simd", 5)}),
            Sentences{"SIMD on one core is 6.0 times as fast as scalar loops (8x8 f32)."});
  EXPECT_EQ(findings_of({row("reference", 3), row("simd", 5)}),
            Sentences{"SIMD does not help here: 5.00 ms on one core, scalar loops need 3.00 ms (8x8 f32)."});
}

TEST(Findings, OverlappingSpreads_AreNeitherFasterNorSlower) {
  for (const double median : {1.5, 4.0})  // the medians differ in either direction
    EXPECT_EQ(
        findings_of({row_between("reference", 1, 2, 3), row_between("parallel", 1.25, median, 5)}),
        Sentences{"With SIMD and all cores the CPU is neither clearly faster nor clearly slower than with "
                  "scalar loops on one core (the spreads overlap: 1.25–5.00 ms and 1.00–3.00 ms) "
                  "(8x8 f32)."});
  std::vector<StudyRow> swept{row_between("parallel", 1, 2, 3), row_between("parallel", 2, 4, 6)};
  swept[0].threads = 1;
  swept[1].threads = 4;
  EXPECT_EQ(findings_of(swept).front(),
            "With 4 threads parallel is neither clearly faster nor clearly slower than with 1 (the spreads "
            "overlap: 2.00–6.00 ms and 1.00–3.00 ms) (8x8 f32).");
}

TEST(Findings, GpuSpreadsOverlap_NeitherFasterNorSlower) {
  std::vector<StudyRow> rows{row_between("parallel", 1, 2, 3), row_between("cuda-simple", 0.5, 1, 2),
                             row_between("cuda", 0.25, 0.5, 1)};
  rows[2].figures["with_copies_ms"] = 2.5;  // inside the spread of the CPU
  const Sentences findings = findings_of(rows);
  for (const std::string& finding : findings) {
    EXPECT_EQ(finding.find("is slower"), std::string::npos) << finding;
    EXPECT_EQ(finding.find("times as fast"), std::string::npos) << finding;
    EXPECT_EQ(finding.find("still faster"), std::string::npos) << finding;
  }
  ASSERT_GE(findings.size(), 3u);
  EXPECT_NE(findings[2].find("the GPU is neither clearly faster nor clearly slower than the CPU"),
            std::string::npos)
      << findings[2];
}

// Eight threads on four CPUs.
TEST(Findings, MoreThreadsThanCpus_AreNamedAsTheCause) {
  std::vector<StudyRow> rows{row("parallel", 8), row("parallel", 2), row("parallel", 5)};
  rows[0].threads = 1;
  rows[1].threads = 4;
  rows[2].threads = 8;
  const Sentences findings = findings_of(rows);
  ASSERT_GE(findings.size(), 2u);
  EXPECT_EQ(findings[0],
            "With 4 threads parallel is 4.0 times as fast as with 1: 100 % of linear scaling (8x8 f32).");
  EXPECT_EQ(
      findings[1],
      "With 8 threads on 4 CPUs, parallel is slower than with 4, 5.00 ms versus 2.00 ms: oversubscribed, the "
      "threads take turns on the CPUs (8x8 f32).");
  for (const std::string& finding : findings)
    EXPECT_EQ(finding.find("too small"), std::string::npos) << finding;
}

TEST(Findings, OnlyOversubscribedThreads_AreComparedWithEachOther) {
  std::vector<StudyRow> rows{row("parallel", 2), row("parallel", 2.02)};
  rows[0].threads = 6;
  rows[1].threads = 8;
  EXPECT_EQ(findings_of(rows).front(),
            "With 8 threads on 4 CPUs, parallel is about as fast as with 6: oversubscribed, the threads take "
            "turns on the CPUs (8x8 f32).");
}

TEST(Findings, SingleOversubscribedCount_IsNamed) {
  std::vector<StudyRow> rows{row("parallel", 2)};
  rows[0].threads = 8;
  EXPECT_EQ(findings_of(rows).front(),
            "With 8 threads on 4 CPUs, parallel is oversubscribed, the threads take turns on the CPUs "
            "(8x8 f32).");
}

TEST(Findings, CpuGain_IsReported) {
  EXPECT_EQ(
      findings_of({row("reference", 30), row("parallel", 2)}),
      Sentences{
          "With SIMD and all cores the CPU is 15 times as fast as with scalar loops on one core (8x8 f32)."});
}

TEST(Findings, SmallDifference_IsAboutAsFast) {
  for (const double ms : {0.98, 1.02})
    EXPECT_EQ(
        findings_of({row("reference", 1), row("parallel", ms)}),
        Sentences{
            "With SIMD and all cores the CPU is about as fast as with scalar loops on one core (8x8 f32)."});
}

TEST(Findings, CpuLoss_IsReported) {
  EXPECT_EQ(
      findings_of({row("reference", 1), row("parallel", 4)}),
      Sentences{
          "SIMD and all cores do not help here: 4.00 ms, scalar loops on one core need 1.00 ms (8x8 f32)."});
}

TEST(Findings, GpuFasterWithCopies_IsReported) {
  EXPECT_EQ(
      findings_of({row("reference", 80), row("parallel", 40), row("cuda-simple", 2.5, 9), row("cuda", 2, 8)}),
      (Sentences{
          "With SIMD and all cores the CPU is 2.0 times as fast as with scalar loops on one core (8x8 f32).",
          "With data already on the device, the GPU is 20 times as fast as the CPU with all cores (8x8 f32).",
          "The tuned kernel is 1.2 times as fast as the simple one: the effect of launch configuration and "
          "memory access pattern (8x8 f32).",
          "Including the copies to the GPU and back it takes 8.00 ms instead of 2.00 ms: 75 % of the time is "
          "copying, "
          "and the GPU is still faster, 5.0 times the CPU's speed (8x8 f32)."}));
}

TEST(Findings, GpuSlowerWithCopies_IsReported) {
  const Sentences findings = findings_of({row("reference", 8), row("parallel", 4), row("cuda", 1, 10)});
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(
      findings[2],
      "Including the copies to the GPU and back it takes 10.0 ms instead of 1.00 ms: 90 % of the time is "
      "copying, and the GPU is slower than the CPU, which needs 4.00 ms (8x8 f32).");
}

TEST(Findings, GpuSlowerWithoutCopies_IsReported) {
  const Sentences findings = findings_of({row("reference", 2), row("parallel", 1), row("cuda", 4)});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1],
            "Even with data already on the device, the GPU is slower than the CPU with all cores: it needs "
            "4.00 ms, the CPU 1.00 ms (8x8 f32).");
}

TEST(Findings, MissingReference_IsReported) {
  StudyRow other = row("parallel", 2);
  other.case_name = "9x9 f32";
  EXPECT_EQ(
      findings_of({row("parallel", 1), other}),
      Sentences{
          "The reference was not run on 8x8 f32, 9x9 f32. No speed-up is shown there; results were checked "
          "against exact values of a few hundred elements and against each other."});
}

TEST(Findings, WrongRow_IsIgnored) {
  StudyRow wrong = row("parallel", 0);
  wrong.agrees = false;
  EXPECT_EQ(findings_of({row("reference", 3), wrong}), Sentences{});
}

TEST(Findings, ThreadSweep_ComparesFewestAndMost) {
  std::vector<StudyRow> rows{row("reference", 20), row("parallel", 5), row("parallel", 10),
                             row("parallel", 6)};
  rows[1].threads = 4;
  rows[2].threads = 1;
  rows[3].threads = 2;
  const Sentences findings = findings_of(rows);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1],
            "With 4 threads parallel is 2.0 times as fast as with 1: 50 % of linear scaling "
            "(8x8 f32).");
}

TEST(Findings, ThreadSweepThatIsSlower_SaysSo) {
  std::vector<StudyRow> rows{row("reference", 20), row("parallel", 1), row("parallel", 4)};
  rows[1].threads = 1;
  rows[2].threads = 2;
  EXPECT_EQ(
      findings_of(rows),
      (Sentences{
          "With SIMD and 1 thread the CPU is 20 times as fast as with scalar loops on one core (8x8 f32).",
          "With 2 threads parallel is slower than with 1, 4.00 ms versus 1.00 ms: the work is too small to "
          "split, "
          "or the cores were busy (8x8 f32)."}));
}

TEST(Findings, SeveralCases_UseTheLastWithMostRows) {
  std::vector<StudyRow> rows{row("reference", 4), row("parallel", 2), row("reference", 9), row("parallel", 3),
                             row("parallel", 1)};
  rows[2].case_name = rows[3].case_name = "second";
  rows[4].case_name = "third";
  EXPECT_EQ(
      findings_of(rows).front(),
      "With SIMD and all cores the CPU is 3.0 times as fast as with scalar loops on one core (second).");
}

}  // namespace
}  // namespace tandem
