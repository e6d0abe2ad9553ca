// Counters of a server in the text format of Prometheus.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace tandem {

// Figures of this moment, which the server keeps elsewhere.
struct ServeGauges {
  std::size_t connections = 0;
  std::size_t waiting = 0;  // requests that are being answered
};

// All functions may be called from any thread.
class ServeMetrics {
 public:
  // `path` is one of the routes, or "other".
  void count_request(const std::string& path, int status, std::int64_t elapsed_ns);
  void count_batch(const std::string& model, std::size_t images);
  void count_unreadable(std::size_t images);
  void count_reload(const std::string& model, bool succeeded);

  std::string text(const ServeGauges& gauges) const;

 private:
  static constexpr std::array bounds_s{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                       0.25,  0.5,    1.0,   2.5,  5.0,   10.0};
  struct Durations {
    std::array<std::uint64_t, bounds_s.size() + 1> counts{};
    double sum_s = 0;
  };
  struct Batches {
    std::uint64_t batches = 0, images = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  std::map<std::string, Durations> durations_;
  std::map<std::string, Batches> batches_;
  std::map<std::pair<std::string, bool>, std::uint64_t> reloads_;
  std::uint64_t unreadable_ = 0;
};

}  // namespace tandem
