#include "tandem/data/synthetic/render_observer.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/data/synthetic/digits.h"
#include "tandem/data/synthetic/plates.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

constexpr RenderObserver::Timing always{.delay_ms = 0, .interval_ms = 0};

struct Report {
  std::int64_t done, total;
  bool operator==(const Report&) const = default;
};

TEST(RenderObserver, Digits_CountTrainingAndTestImages) {
  const ThreadLimit one_thread(1);
  std::vector<Report> reports;
  const RenderObserver observer(
      [&](std::int64_t done, std::int64_t total) {
        reports.push_back({done, total});
      },
      always);
  digits_split(3, 2);
  EXPECT_EQ(reports, (std::vector<Report>{{1, 5}, {2, 5}, {3, 5}, {4, 5}, {5, 5}}));
}

TEST(RenderObserver, ManyThreads_ReportOneAtATime) {
  std::vector<Report> reports;  // a data race if two report at once
  {
    const RenderObserver observer(
        [&](std::int64_t done, std::int64_t total) {
          reports.push_back({done, total});
        },
        always);
    make_digits(2000, 1);
  }
  ASSERT_FALSE(reports.empty());
  for (std::size_t i = 1; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].total, 2000);
    EXPECT_GE(reports[i].done, reports[i - 1].done);
  }
  const std::size_t count = reports.size();
  make_digits(10, 1);
  EXPECT_EQ(reports.size(), count);  // the observer is gone
}

TEST(RenderObserver, Plates_CountFiles) {
  const ThreadLimit one_thread(1);
  const TempFolder folder;
  std::vector<Report> reports;
  const RenderObserver observer(
      [&](std::int64_t done, std::int64_t total) {
        reports.push_back({done, total});
      },
      always);
  write_plates(folder / "plates", {.train = 1, .test = 1, .size = 8});
  EXPECT_EQ(reports, (std::vector<Report>{{1, 3}, {2, 3}, {3, 3}}));
}

TEST(RenderObserver, InnerObserver_ReplacesTheOuterOne) {
  int outer_calls = 0, inner_calls = 0;
  const RenderObserver outer([&](std::int64_t, std::int64_t) { ++outer_calls; }, always);
  {
    const RenderObserver inner([&](std::int64_t, std::int64_t) { ++inner_calls; }, always);
    make_digits(1, 1);
  }
  EXPECT_EQ(outer_calls, 0);
  EXPECT_EQ(inner_calls, 1);
  const RenderObserver nothing({}, always);
  make_digits(1, 1);
  EXPECT_EQ(outer_calls, 1);
}

TEST(RenderObserver, BeforeTheDelay_NothingIsReported) {
  int calls = 0;
  const RenderObserver observer([&](std::int64_t, std::int64_t) { ++calls; },
                                {.delay_ms = std::numeric_limits<double>::infinity()});
  make_digits(100, 1);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace tandem
