#include "tandem/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tandem {
namespace {

// A label's value: backslash, quote and line feed are escaped.
std::string label(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text;
}

void describe(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

void ServeMetrics::count_request(const std::string& path, int status, std::int64_t elapsed_ns) {
  const double seconds = static_cast<double>(elapsed_ns) / 1e9;
  const auto bucket = std::ranges::lower_bound(bounds_s, seconds) - bounds_s.begin();
  const std::lock_guard lock(mutex_);
  ++requests_[{path, status}];
  Durations& durations = durations_[path];
  ++durations.counts[static_cast<std::size_t>(bucket)];
  durations.sum_s += seconds;
}

void ServeMetrics::count_batch(const std::string& model, std::size_t images) {
  const std::lock_guard lock(mutex_);
  Batches& batches = batches_[model];
  ++batches.batches;
  batches.images += images;
}

void ServeMetrics::count_unreadable(std::size_t images) {
  const std::lock_guard lock(mutex_);
  unreadable_ += images;
}

void ServeMetrics::count_reload(const std::string& model, bool succeeded) {
  const std::lock_guard lock(mutex_);
  ++reloads_[{model, succeeded}];
}

std::string ServeMetrics::text(const ServeGauges& gauges) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  describe(text, "tandem_requests_total", "counter", "Requests answered.");
  for (const auto& [key, count] : requests_)
    text += fmt::format("tandem_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", label(key.first),
                        key.second, count);
  describe(text, "tandem_request_seconds", "histogram", "From the first byte of a request to its answer.");
  for (const auto& [path, durations] : durations_) {
    const std::string name = label(path);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < bounds_s.size(); ++i)
      text += fmt::format("tandem_request_seconds_bucket{{path=\"{}\",le=\"{}\"}} {}\n", name, bounds_s[i],
                          total += durations.counts[i]);
    total += durations.counts.back();
    text += fmt::format(
        "tandem_request_seconds_bucket{{path=\"{0}\",le=\"+Inf\"}} {1}\n"
        "tandem_request_seconds_sum{{path=\"{0}\"}} {2}\n"
        "tandem_request_seconds_count{{path=\"{0}\"}} {1}\n",
        name, total, durations.sum_s);
  }
  describe(text, "tandem_images_total", "counter", "Images classified.");
  for (const auto& [model, batches] : batches_)
    text += fmt::format("tandem_images_total{{model=\"{}\"}} {}\n", label(model), batches.images);
  describe(text, "tandem_batches_total", "counter", "Batches computed.");
  for (const auto& [model, batches] : batches_)
    text += fmt::format("tandem_batches_total{{model=\"{}\"}} {}\n", label(model), batches.batches);
  describe(text, "tandem_unreadable_images_total", "counter", "Images that could not be read.");
  text += fmt::format("tandem_unreadable_images_total {}\n", unreadable_);
  describe(text, "tandem_model_reloads_total", "counter", "Changed model files, loaded or refused.");
  for (const auto& [key, count] : reloads_)
    text += fmt::format("tandem_model_reloads_total{{model=\"{}\",result=\"{}\"}} {}\n", label(key.first),
                        key.second ? "loaded" : "refused", count);
  describe(text, "tandem_connections", "gauge", "Open connections.");
  text += fmt::format("tandem_connections {}\n", gauges.connections);
  describe(text, "tandem_requests_waiting", "gauge", "Requests that are being answered.");
  text += fmt::format("tandem_requests_waiting {}\n", gauges.waiting);
  return text;
}

}  // namespace tandem
