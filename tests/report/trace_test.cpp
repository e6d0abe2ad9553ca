#include "tandem/report/trace.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using Json = nlohmann::json;

// The objects of one phase ("M" or "X"), in order.
std::vector<Json> of_kind(const Json& trace, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& object : trace.at("traceEvents"))
    if (object.at("ph") == kind) found.push_back(object);
  return found;
}

TEST(Trace, Bar_HasTrackTimesAndArgs) {
  const std::vector<TraceEvent> events{
      {.track = "worker 1", .name = "augment", .begin_us = 12.5, .duration_us = 3.25},
      {.track = "trainer", .name = "wait", .begin_us = 20, .duration_us = 0, .args = {{"batch", "7"}}},
      {.track = "worker 1", .name = "augment", .begin_us = 16, .duration_us = 3}};
  const Json trace = Json::parse(to_trace_text(events));
  EXPECT_EQ(trace.at("displayTimeUnit"), "ms");
  const auto bars = of_kind(trace, "X");
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[0].at("name"), "augment");
  EXPECT_EQ(bars[0].at("ts"), 12.5);
  EXPECT_EQ(bars[0].at("dur"), 3.25);
  EXPECT_FALSE(bars[0].contains("args"));
  EXPECT_EQ(bars[1].at("args"), (Json{{"batch", "7"}}));
  EXPECT_EQ(bars[0].at("tid"), bars[2].at("tid"));
  EXPECT_NE(bars[0].at("tid"), bars[1].at("tid"));
  for (const Json& bar : bars) EXPECT_EQ(bar.at("pid"), bars[0].at("pid"));
}

TEST(Trace, Tracks_NamedOnceInOrderOfAppearance) {
  const std::vector<TraceEvent> events{{.track = "b", .name = "1"},
                                       {.track = "a", .name = "2"},
                                       {.track = "b", .name = "3"},
                                       {.track = "c", .name = "4"}};
  const Json trace = Json::parse(to_trace_text(events));
  std::vector<std::string> names;
  std::vector<int> order;
  for (const Json& object : of_kind(trace, "M")) {
    if (object.at("name") == "thread_name") names.push_back(object.at("args").at("name"));
    if (object.at("name") == "thread_sort_index") order.push_back(object.at("args").at("sort_index"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Trace, UnusualNames_RoundTrip) {
  const std::string odd = "quote \" backslash \\ newline \n tab \t nul-like \x01 ⌊x⌋";
  const std::vector<TraceEvent> events{{.track = odd, .name = odd, .args = {{odd, odd}}},
                                       {.track = "no \xff UTF-8", .name = "\xc3"}};
  const Json trace = Json::parse(to_trace_text(events));
  const auto bars = of_kind(trace, "X");
  ASSERT_EQ(bars.size(), 2u);
  EXPECT_EQ(bars[0].at("name"), odd);
  EXPECT_EQ(bars[0].at("args").at(odd), odd);
  EXPECT_EQ(of_kind(trace, "M")[0].at("args").at("name"), odd);
  EXPECT_EQ(bars[1].at("name"), "\xef\xbf\xbd");
}

TEST(Trace, Times_KeepFullPrecision) {
  const std::vector<TraceEvent> events{
      {.track = "t", .name = "late", .begin_us = 123456789012.125, .duration_us = 0.001}};
  const auto bars = of_kind(Json::parse(to_trace_text(events)), "X");
  ASSERT_EQ(bars.size(), 1u);
  EXPECT_EQ(bars[0].at("ts"), 123456789012.125);
  EXPECT_EQ(bars[0].at("dur"), 0.001);
}

TEST(Trace, NonFiniteTimes_AreLeftOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  const std::vector<TraceEvent> events{{.track = "a", .name = "1", .begin_us = nan},
                                       {.track = "b", .name = "2", .duration_us = infinity},
                                       {.track = "c", .name = "3"}};
  const Json trace = Json::parse(to_trace_text(events));
  ASSERT_EQ(of_kind(trace, "X").size(), 1u);
  EXPECT_EQ(of_kind(trace, "X")[0].at("name"), "3");
  EXPECT_EQ(of_kind(trace, "M").size(), 2u);
}

TEST(Trace, NoEvents_GiveAnEmptyTimeline) {
  const Json trace = Json::parse(to_trace_text({}));
  EXPECT_TRUE(trace.at("traceEvents").is_array());
  EXPECT_TRUE(trace.at("traceEvents").empty());
}

}  // namespace
}  // namespace tandem
