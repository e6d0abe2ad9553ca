#include "tandem/train/failed_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/core/message_of.h"
#include "tandem/dist/process_end.h"

namespace tandem {
namespace {

void sleep_ms(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

// False when the process of `rank` goes on for longer than that, or is one of another host.
bool has_ended_within(const Group& group, int rank, double seconds) {
  const Place& place = group.places()[static_cast<std::size_t>(rank)];
  const bool is_visible = place.host == group.place().host;
  const ProcessEnd process = is_visible ? ProcessEnd(static_cast<pid_t>(place.pid)) : ProcessEnd();
  for (const Stopwatch watch; watch.elapsed_ms() < 1000 * seconds; sleep_ms(5))
    if (process.has_ended()) return true;
  return false;
}

bool has_failed(Group& group) {
  try {
    group.throw_if_failed();
    return false;
  } catch (const Error&) {
    return true;
  }
}

bool is_lost_rank(const std::exception& error) {
  return dynamic_cast<const LostRank*>(&error) != nullptr;
}

// The ranks that should say it, one if the one before does not.
std::vector<int> speakers(const Place& own, const std::exception& error, bool is_own) {
  if (!is_lost_rank(error)) return is_own ? std::vector{0, own.rank} : std::vector{0};
  int lost = -1;
  std::sscanf(error.what(), "rank %d ", &lost);
  std::vector<int> others;
  for (int rank = 0; rank < own.size && others.size() < 2; ++rank)
    if (rank != lost) others.push_back(rank);
  return others;
}

std::string named(const Place& place, const std::string& text) {
  return fmt::format("rank {} on {}: {}", place.rank, place.host, text);
}

}  // namespace

std::string end_with_error(Group& group, const std::exception& error, double grace_s) {
  const Place& own = group.place();
  const std::string text = message_of(error);
  const bool is_own = !is_lost_rank(error) && !has_failed(group);
  if (is_own) group.fail(text);
  const bool several_hosts =
      std::ranges::any_of(group.places(), [&](const Place& place) { return place.host != own.host; });
  for (const int rank : speakers(own, error, is_own)) {
    if (rank == own.rank) return is_own && (rank != 0 || several_hosts) ? named(own, text) : text;
    if (has_ended_within(group, rank, grace_s)) break;
  }
  return "";
}

std::string end_with_error(const LaunchedRank& launched, const std::string& error, double grace_s) {
  const Place& own = launched.place;
  if (own.rank == 0) return error;
  sleep_ms(1000 * grace_s);
  return own.local_rank == 0 ? named(own, error) : "";
}

}  // namespace tandem
