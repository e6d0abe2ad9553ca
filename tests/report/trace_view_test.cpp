#include "tandem/report/trace_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using nlohmann::json;

json view_of(const std::vector<TraceEvent>& events, std::size_t max_spans = max_view_spans,
             const std::string& process = "") {
  const std::string lanes = trace_lanes(process, events, max_spans);
  return json::parse(trace_view({&lanes, 1}, true));
}

TEST(TraceView, FewBars_StayAsTheyAre) {
  const json view =
      view_of({{.track = "trainer", .name = "wait", .begin_us = 0, .duration_us = 250, .args = {}},
               {.track = "trainer", .name = "step", .begin_us = 500, .duration_us = 1500, .args = {}},
               {.track = "worker 0", .name = "a \"b\" \xff", .begin_us = 1, .duration_us = 1, .args = {}}});
  EXPECT_EQ(view.at("complete"), true);
  ASSERT_EQ(view.at("lanes").size(), 2u);
  const json& trainer = view.at("lanes")[0];
  EXPECT_EQ(trainer.at("name"), "trainer");
  EXPECT_EQ(trainer.at("names"), json::parse(R"(["wait", "step"])"));
  EXPECT_EQ(trainer.at("spans"), json::parse("[[0, 0, 0.25, 1, 0.25], [1, 0.5, 2, 1, 1.5]]"));
}

TEST(TraceView, ManyBars_BecomeOneWithTheirCountAndTime) {
  std::vector<TraceEvent> events;
  for (int i = 0; i < 100'000; ++i) {
    events.push_back(
        {.track = "worker 0", .name = "load", .begin_us = 10.0 * i, .duration_us = 6, .args = {}});
    events.push_back(
        {.track = "worker 0", .name = "put", .begin_us = 10.0 * i + 6, .duration_us = 2, .args = {}});
  }
  const json spans = view_of(events, 500).at("lanes")[0].at("spans");
  EXPECT_LE(spans.size(), 500u);
  EXPECT_GE(spans.size(), 100u);
  std::int64_t loads = 0;
  double busy = 0, end = 0;
  for (const json& span : spans) {
    EXPECT_GE(span[1].get<double>(), end - 0.002) << span;  // they do not overlap
    end = span[2];
    EXPECT_NEAR(span[2].get<double>() - span[1].get<double>(), span[4].get<double>(), 0.002);
    loads += span[0] == 0 ? span[3].get<std::int64_t>() : 0;
    busy += span[0] == 0 ? span[4].get<double>() : 0;
  }
  EXPECT_EQ(loads, 100'000);
  EXPECT_NEAR(busy, 600, 0.5);  // ms
  EXPECT_NEAR(end, 1000, 10);
}

TEST(TraceView, MoreNamesThanRoom_AreStillBounded) {
  std::vector<TraceEvent> events;
  for (int i = 0; i < 3000; ++i)
    events.push_back(
        {.track = "trainer", .name = std::to_string(i), .begin_us = 0, .duration_us = 0, .args = {}});
  for (int i = 0; i < 3000; ++i)
    events.push_back({.track = std::to_string(i), .name = "x", .begin_us = 0, .duration_us = 0, .args = {}});
  const json view = view_of(events, 100);
  EXPECT_EQ(view.at("lanes").size(), max_view_lanes);
  for (const json& lane : view.at("lanes")) EXPECT_LE(lane.at("spans").size(), 20u);
}

TEST(TraceView, Processes_NameTheirLanes) {
  const std::vector<TraceEvent> events{
      {.track = "trainer", .name = "step", .begin_us = 0, .duration_us = 1, .args = {}}};
  const std::vector<std::string> lanes{trace_lanes("rank 0 on a", events), "",
                                       trace_lanes("rank 1 on b", events)};
  const json view = json::parse(trace_view(lanes, false));
  EXPECT_EQ(view.at("complete"), false);
  ASSERT_EQ(view.at("lanes").size(), 2u);
  EXPECT_EQ(view.at("lanes")[1].at("name"), "rank 1 on b: trainer");
  EXPECT_EQ(json::parse(trace_view({}, true)).at("lanes"), json::array());
}

}  // namespace
}  // namespace tandem
