// run_case() on synthetic computations: correct, wrong and slow ones.
#include "tandem/study/study_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/core/parallel.h"
#include "tandem/ops/fill.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

// Twelve ones; `change` may corrupt the result of a version.
StudyCase ones(const std::function<void(std::vector<double>&, Version)>& change) {
  return {.name = "ones",
          .inputs = {zeros({12}, DType::f64)},
          .compute =
              [change](std::span<const Tensor> in, Version version) {
                std::vector<double> values(12, 1.0);
                change(values, version);
                return Tensor::from(values, {static_cast<std::int64_t>(values.size())}).to(in[0].device());
              },
          .exact = [](std::int64_t) { return 1.0; },
          .tolerance = 1e-6,
          .bytes = 96,
          .reference_steps = 12};
}

const StudyOptions on_cpu{.quick = true, .devices = {cpu_device}};

std::vector<StudyRow> rows_of(const StudyCase& study_case, const StudyOptions& options) {
  StudyProgress progress(options);
  return run_case(study_case, options, progress);
}

TEST(RunCase, CorrectVersions_AgreeAndAreMeasured) {
  const std::vector<StudyRow> rows = rows_of(ones([](auto&, Version) {}), on_cpu);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].version, "reference");
  EXPECT_EQ(rows[1].version, "simd");
  EXPECT_EQ(rows[2].version, "parallel");
  for (const StudyRow& row : rows) {
    EXPECT_EQ(row.case_name, "ones");
    EXPECT_EQ(row.device, "cpu");
    EXPECT_TRUE(row.agrees);
    EXPECT_EQ(row.figures["max_error"], 0);
    EXPECT_GT(row.value("min_ms"), 0);
    EXPECT_LE(row.value("min_ms"), row.value("median_ms"));
    EXPECT_LE(row.value("median_ms"), row.value("max_ms"));
    EXPECT_FALSE(row.figures["with_copies_ms"]);
    EXPECT_FALSE(row.figures["gflop_per_s"]);
    EXPECT_NEAR(row.value("gb_per_s"), 96 / row.value("median_ms") / 1e6, 1e-9);
    EXPECT_GT(row.value("share_of_peak"), 0);
    EXPECT_LE(row.value("share_of_peak"), 1);
    EXPECT_DOUBLE_EQ(row.value("speedup"), rows[0].value("median_ms") / row.value("median_ms"));
  }
  EXPECT_EQ(rows[0].figures["speedup"], 1);
}

TEST(RunCase, WrongVersion_IsMarkedAndNotMeasured) {
  const std::vector<StudyRow> rows = rows_of(ones([](std::vector<double>& values, Version version) {
                                               if (version == Version::parallel) values.back() = 1.5;
                                             }),
                                             on_cpu);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].agrees);
  EXPECT_TRUE(rows[1].agrees);
  EXPECT_FALSE(rows[2].agrees);
  EXPECT_DOUBLE_EQ(rows[2].value("max_error"), 0.5);
  EXPECT_TRUE(std::isnan(rows[2].value("median_ms")));
  EXPECT_FALSE(rows[2].figures["speedup"]);
  EXPECT_FALSE(rows[2].figures["share_of_peak"]);
}

TEST(RunCase, WrongReference_DoesNotAffectOthers) {
  const std::vector<StudyRow> rows = rows_of(ones([](std::vector<double>& values, Version version) {
                                               if (version == Version::reference) values[0] = 2;
                                             }),
                                             on_cpu);
  EXPECT_FALSE(rows[0].agrees);
  EXPECT_TRUE(rows[1].agrees);
  EXPECT_FALSE(rows[1].figures["speedup"]);
}

TEST(RunCase, NonFiniteResult_IsWrong) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const std::vector<StudyRow> rows = rows_of(ones([bad](std::vector<double>& values, Version version) {
                                                 if (version == Version::parallel) values[3] = bad;
                                               }),
                                               on_cpu);
    EXPECT_FALSE(rows[2].agrees);
    EXPECT_TRUE(std::isinf(rows[2].value("max_error")));
  }
}

TEST(RunCase, ResultOfDifferentSize_IsWrong) {
  const std::vector<StudyRow> rows = rows_of(ones([](std::vector<double>& values, Version version) {
                                               if (version == Version::reference) values.resize(5);
                                             }),
                                             on_cpu);
  EXPECT_FALSE(rows[0].agrees);
  EXPECT_TRUE(rows[1].agrees);
}

TEST(RunCase, ErrorWithinTolerance_Agrees) {
  const std::vector<StudyRow> rows = rows_of(ones([](std::vector<double>& values, Version version) {
                                               if (version == Version::parallel) values[7] += 5e-7;
                                             }),
                                             on_cpu);
  EXPECT_TRUE(rows[2].agrees);
  EXPECT_NEAR(rows[2].value("max_error"), 5e-7, 1e-12);
}

TEST(RunCase, VersionFasterThanCopy_BecomesPeak) {
  StudyCase fast = ones([](auto&, Version) {});
  fast.bytes = std::int64_t{1} << 20;  // claims to move more than it does
  double max_share = 0;
  for (const StudyRow& row : rows_of(fast, on_cpu)) {
    EXPECT_LE(row.value("share_of_peak"), 1);
    max_share =
        std::max(max_share, row.value("share_of_peak") * row.value("median_ms") / row.value("min_ms"));
  }
  EXPECT_NEAR(max_share, 1, 1e-9);
}

TEST(RunCase, SlowReference_IsSkipped) {
  StudyCase slow = ones([](auto&, Version) {});
  slow.reference_steps = std::int64_t{1} << 40;
  const std::vector<StudyRow> rows = rows_of(slow, on_cpu);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].version, "simd");
  EXPECT_TRUE(rows[0].agrees);
  EXPECT_FALSE(rows[0].figures["speedup"]);
}

TEST(RunCase, NoReference_ExactValuesFindTheError) {
  StudyCase slow = ones([](std::vector<double>& values, Version) { values[6] = 1.25; });
  slow.reference_steps = std::int64_t{1} << 40;
  EXPECT_FALSE(rows_of(slow, on_cpu)[0].agrees);
}

TEST(RunCase, ThreadSweep_RestoresThreadCount) {
  const int before = thread_count();
  std::vector<int> observed;
  StudyOptions options = on_cpu;
  options.threads = {1, 3};
  const std::vector<StudyRow> rows = rows_of(ones([&observed](auto&, Version version) {
                                               if (version == Version::parallel)
                                                 observed.push_back(thread_count());
                                             }),
                                             options);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_FALSE(rows[0].threads);
  EXPECT_EQ(rows[2].threads, 1);
  EXPECT_EQ(rows[3].threads, 3);
  EXPECT_EQ(observed.front(), before);  // this call determines the shape of the result
  EXPECT_EQ(observed.at(1), 1);
  EXPECT_EQ(observed.back(), 3);
  EXPECT_EQ(thread_count(), before);
}

TEST(RunCase, MoreThreadsThanCpus_AreMarked) {
  StudyOptions options = on_cpu;
  options.versions = {Version::parallel};
  options.threads = {1, usable_cpus() + 1};
  const std::vector<StudyRow> rows = rows_of(ones([](auto&, Version) {}), options);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].note, "");
  EXPECT_EQ(rows[1].note, "oversubscribed");
}

TEST(RunCase, AfterTimeLimit_VersionsAreLeftOutAndNamed) {
  StudyOptions options = on_cpu;
  options.time_limit_s = 1e-12;
  std::vector<std::string> reported;
  options.on_progress = [&](const std::string& what) { reported.push_back(what); };
  StudyProgress progress(options);
  const std::vector<StudyRow> rows = run_case(ones([](auto&, Version) {}), options, progress);
  ASSERT_EQ(rows.size(), 1u) << "the first version is measured whatever the limit";
  EXPECT_EQ(rows[0].version, "simd") << "the reference does not fit into a picosecond";
  EXPECT_EQ(reported, std::vector<std::string>{"ones, simd"});
  EXPECT_EQ(
      progress.findings(),
      std::vector<std::string>{"Left out after the time limit of 1e-12 s: ones, reference; ones, parallel."});
}

TEST(RunCase, NoTimeLimit_EverythingIsReportedAndMeasured) {
  StudyOptions options = on_cpu;
  std::vector<std::string> reported;
  options.on_progress = [&](const std::string& what) { reported.push_back(what); };
  options.threads = {1};
  StudyProgress progress(options);
  EXPECT_EQ(run_case(ones([](auto&, Version) {}), options, progress).size(), 3u);
  EXPECT_EQ(reported,
            (std::vector<std::string>{"ones, reference", "ones, simd", "ones, parallel with 1 thread"}));
  EXPECT_TRUE(progress.findings().empty());
}

TEST(RunCase, NothingToRun_Throws) {
  StudyOptions options = on_cpu;
  options.versions = {Version::cuda, Version::cuda_simple};
  EXPECT_EQ(error_text([&] { rows_of(ones([](auto&, Version) {}), options); }),
            "[study] case \"ones\": none of the requested versions (cuda, cuda-simple) can run here");
}

TEST(CheckFits, TooLargeForMemory_Throws) {
  check_fits("max", "small", 1e3);
  const std::string error = error_text([] { check_fits("max", "1000000000x1000000000 i32", 3e18); });
  EXPECT_EQ(
      error.rfind("[study max] case \"1000000000x1000000000 i32\" needs about 44703483582 GiB of memory, "
                  "this machine has ",
                  0),
      0u)
      << error;
}

}  // namespace
}  // namespace tandem
