// Reads traces back and checks what must hold for the spans of any run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/files/test_files.h"

namespace tandem {

struct ReadBar {
  int process = 0;
  std::string track, name;
  double begin_us = 0, end_us = 0;
  std::int64_t epoch = 0, first = 0, last = 0;  // counted from 1; 0: not said
};

struct ReadTrace {
  std::map<int, std::string> processes;  // those that have a name
  std::vector<std::string> tracks;       // from the top down
  std::vector<ReadBar> bars;
};

// "17 to 32" of `what`.
inline void read_range(const nlohmann::json& args, ReadBar& bar) {
  bar.epoch = std::stoll(args.at("epoch").get<std::string>());
  for (const char* what : {"steps", "positions"}) {
    if (!args.contains(what)) continue;
    long long first = 0, last = 0;
    EXPECT_EQ(std::sscanf(args.at(what).get<std::string>().c_str(), "%lld to %lld", &first, &last), 2);
    bar.first = first;
    bar.last = last;
  }
}

inline ReadTrace parse_trace(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  std::map<std::pair<int, int>, std::string> names, order;
  ReadTrace trace;
  for (const auto& object : json.at("traceEvents")) {
    if (object.at("ph") != "M") continue;
    const int process = object.at("pid");
    const std::pair<int, int> row(process, object.at("tid"));
    const auto& args = object.at("args");
    if (object.at("name") == "process_name") trace.processes[process] = args.at("name");
    if (object.at("name") == "thread_name") names[row] = args.at("name");
    if (object.at("name") == "thread_sort_index") order[{process, args.at("sort_index")}] = names.at(row);
  }
  for (const auto& [index, name] : order) trace.tracks.push_back(name);
  for (const auto& object : json.at("traceEvents")) {
    if (object.at("ph") != "X") continue;
    const int process = object.at("pid");
    ReadBar bar{.process = process,
                .track = names.at({process, object.at("tid")}),
                .name = object.at("name"),
                .begin_us = object.at("ts")};
    bar.end_us = bar.begin_us + object.at("dur").get<double>();
    if (object.contains("args") && object.at("args").contains("epoch")) read_range(object.at("args"), bar);
    trace.bars.push_back(bar);
  }
  return trace;
}

inline ReadTrace read_trace(const std::filesystem::path& path) {
  return parse_trace(get_bytes(path));
}

inline std::vector<ReadBar> bars_named(const ReadTrace& trace, const std::string& track,
                                       const std::string& name) {
  std::vector<ReadBar> found;
  for (const ReadBar& bar : trace.bars)
    if (bar.track.starts_with(track) && bar.name == name) found.push_back(bar);
  return found;
}

// The spans of a track do not overlap, and none starts before the trace.
inline void expect_apart(const ReadTrace& trace) {
  constexpr double rounding_us = 1e-3;
  std::map<std::pair<int, std::string>, std::vector<ReadBar>> tracks;
  for (const ReadBar& bar : trace.bars) tracks[{bar.process, bar.track}].push_back(bar);
  for (auto& [row, bars] : tracks) {
    const std::string& track = row.second;
    std::ranges::stable_sort(bars, {}, &ReadBar::begin_us);
    EXPECT_GE(bars.front().begin_us, 0) << track;
    for (std::size_t i = 0; i < bars.size(); ++i) {
      EXPECT_LE(bars[i].begin_us, bars[i].end_us) << track;
      if (i > 0) {
        EXPECT_GE(bars[i].begin_us, bars[i - 1].end_us - rounding_us)
            << track << ": " << bars[i - 1].name << ", " << bars[i].name;
      }
    }
  }
}

// The bars' ranges are 1 … count of each of `epochs` epochs, every one once.
inline void expect_covered(const std::vector<ReadBar>& bars, std::int64_t epochs, std::int64_t count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> covered, expected;
  for (const ReadBar& bar : bars)
    for (std::int64_t i = bar.first; i <= bar.last; ++i) covered.emplace_back(bar.epoch, i);
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch)
    for (std::int64_t i = 1; i <= count; ++i) expected.emplace_back(epoch, i);
  std::ranges::sort(covered);
  EXPECT_EQ(covered, expected);
}

}  // namespace tandem
