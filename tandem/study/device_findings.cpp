#include "tandem/study/device_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "tandem/report/study_plots.h"
#include "tandem/report/study_rows.h"
#include "tandem/study/compare_rows.h"
#include "tandem/study/thread_findings.h"
#include "tandem/study/training_case.h"

namespace tandem {
namespace {

// A correct, measured row with its parsed case and its speed relative to the CPU's fastest row.
struct Measured {
  TrainingCase training;
  const StudyRow* row;
  Speed speed = Speed::unclear;
  std::optional<double> speedup = {};
};

// Of a sweep over threads only the fastest row.
std::vector<Measured> measured_rows(const std::vector<StudyRow>& rows) {
  std::vector<Measured> measured;
  for (const StudyRow& row : rows) {
    const StudyRow* const cpu = fastest_row(rows, row.case_name, "cpu");
    if (!row.agrees || !(row.value("median_ms") > 0) || (row.threads && &row != cpu)) continue;
    measured.push_back({parse_training_case(row.case_name), &row});
    if (!cpu) continue;
    measured.back().speed = compare_speed(row, *cpu);
    measured.back().speedup = times_as_fast(row, *cpu);
  }
  std::stable_sort(measured.begin(), measured.end(), [](const Measured& a, const Measured& b) {
    return a.training.weights() < b.training.weights();
  });
  return measured;
}

std::vector<std::string> devices_of(const std::vector<StudyRow>& rows) {
  std::vector<std::string> devices;
  for (const StudyRow& row : rows)
    if (std::find(devices.begin(), devices.end(), row.device) == devices.end()) devices.push_back(row.device);
  return devices;
}

// What one line of a plot shows: perceptrons of all sizes, or the convolutional network, which computes far
// more per weight, at one batch size.
struct Line {
  bool convolutional = false;
  std::int64_t batch = 0;

  auto operator<=>(const Line&) const = default;
  std::string name() const { return fmt::format("{}batch {}", convolutional ? "cnn, " : "", batch); }
};

// The rows of a device, from the smallest network to the largest.
using Lines = std::map<Line, std::vector<Measured>>;
Lines lines_of(const std::vector<Measured>& measured, const std::string& device) {
  Lines lines;
  for (const Measured& one : measured)
    if (one.row->device == device)
      lines[{one.training.is_convolutional(), one.training.batch_size}].push_back(one);
  return lines;
}

bool wins(const Measured& one) {
  return one.speed == Speed::faster;
}

// "at batch 16 from 784,200,10 on".
std::string winning_networks(const Line& line, const std::vector<Measured>& networks) {
  const std::int64_t batch = line.batch;
  if (line.convolutional)
    return fmt::format("{} cnn at batch {}", wins(networks.front()) ? "with" : "not with", batch);
  const auto last_lost =
      std::find_if(networks.rbegin(), networks.rend(), [](const Measured& one) { return !wins(one); });
  if (last_lost == networks.rend()) return fmt::format("at batch {} with every network", batch);
  if (last_lost != networks.rbegin())
    return fmt::format("at batch {} from {} on", batch, last_lost.base()->training.network());
  std::vector<std::string> won;
  for (const Measured& one : networks)
    if (wins(one)) won.push_back(one.training.network());
  return won.empty() ? fmt::format("at batch {} in no case", batch)
                     : fmt::format("at batch {} only with {}", batch, fmt::join(won, " and "));
}

void add_crossover(const std::vector<Measured>& measured, const std::string& device,
                   std::vector<std::string>& findings) {
  std::vector<Measured> compared;
  for (const Measured& one : measured)
    if (one.row->device == device && one.speedup) compared.push_back(one);
  if (compared.empty()) return;
  const auto [worst, best] =
      std::minmax_element(compared.begin(), compared.end(),
                          [](const Measured& a, const Measured& b) { return *a.speedup < *b.speedup; });
  const auto described = [](const Measured& one) {
    return fmt::format("{} the CPU's speed ({})", times_text(*one.speedup), one.row->case_name);
  };
  const std::string range = compared.size() == 1
                                ? described(*best)
                                : fmt::format("from {} to {}", described(*worst), described(*best));
  if (wins(*worst)) {
    findings.push_back(fmt::format("{} is faster in every case: {}.", device, range));
  } else if (!wins(*best)) {
    findings.push_back(fmt::format("{} is faster in no case: {}.", device, range));
  } else {
    std::vector<std::string> parts;
    for (const auto& [line, networks] : lines_of(compared, device))
      parts.push_back(winning_networks(line, networks));
    findings.push_back(fmt::format("Where {} becomes faster: {}. Its speed ranges {}.", device,
                                   fmt::join(parts, ", "), range));
  }
}

void add_copies(const std::vector<Measured>& measured, const std::string& device,
                std::vector<std::string>& findings) {
  const Measured* shortest = nullptr;
  std::vector<std::string> lost;  // cases where one epoch plus the copy is slower than on the CPU
  for (const Measured& one : measured) {
    const StudyRow& row = *one.row;
    if (row.device != device || !row.figures["with_copies_ms"]) continue;
    if (!shortest || row.value("median_ms") < shortest->row->value("median_ms")) shortest = &one;
    if (one.speedup && wins(one) && *one.speedup * row.value("median_ms") < row.value("with_copies_ms"))
      lost.push_back(row.case_name);
  }
  if (!shortest) return;
  const double copy_ms = shortest->row->value("with_copies_ms") - shortest->row->value("median_ms");
  findings.push_back(fmt::format(
      "Copying the images to {} takes {}, once per training run: as long as {:.2g} of the shortest "
      "epochs ({}). {}.",
      device, format_number(copy_ms, Unit::milliseconds), copy_ms / shortest->row->value("median_ms"),
      shortest->row->case_name,
      lost.empty()
          ? std::string("It does not make the CPU faster for even one epoch")
          : fmt::format("Including it, the CPU is faster for one epoch of {}", fmt::join(lost, " and "))));
}

// The gain from large batches on a device: the networks with the lowest and the highest gain.
void add_batch_gain(const std::vector<Measured>& measured, const std::string& device,
                    std::vector<std::string>& findings) {
  const Lines lines = lines_of(measured, device);
  const auto perceptrons_end = lines.lower_bound({.convolutional = true});
  if (std::distance(lines.begin(), perceptrons_end) < 2) return;
  const auto& [small_line, small] = *lines.begin();
  const auto& [large_line, large] = *std::prev(perceptrons_end);
  std::vector<std::pair<double, std::string>> gains;
  bool any_clear = false;
  for (const Measured& one : small)
    for (const Measured& other : large)
      if (one.training.layers == other.training.layers) {
        const double gain = times_as_fast(*other.row, *one.row);
        const bool clear = compare_speed(*other.row, *one.row) != Speed::unclear;
        any_clear = any_clear || clear;
        gains.emplace_back(
            gain, fmt::format("{} with {}", clear ? times_text(gain) + " as fast" : "not clearly faster",
                              one.training.network()));
      }
  if (gains.empty()) return;
  const std::string start =
      fmt::format("On {}, batch size {} instead of {} makes", device, large_line.batch, small_line.batch);
  if (!any_clear) return findings.push_back(start + " no clear difference: the spreads overlap.");
  const auto [min, max] = std::minmax_element(gains.begin(), gains.end());
  findings.push_back(
      fmt::format("{} an epoch {}.", start, min == max ? min->second : min->second + " and " + max->second));
}

// "perceptron resident on cuda:0", without the number of blocks or threads.
std::string engine_kind(const std::string& engine) {
  return engine.substr(0, engine.find(','));
}

void add_engines(const std::vector<StudyRow>& rows, const std::string& device,
                 std::vector<std::string>& findings) {
  std::vector<std::pair<std::string, std::vector<std::string>>> engines;
  for (const StudyRow& row : rows) {
    if (row.device != device || row.engine.empty()) continue;
    if (row.threads && &row != fastest_row(rows, row.case_name, row.version)) continue;
    const std::string kind = engine_kind(row.engine);
    auto found = std::find_if(engines.begin(), engines.end(), [&](const auto& e) { return e.first == kind; });
    if (found == engines.end()) found = engines.insert(engines.end(), {kind, {}});
    std::vector<std::string>& networks = found->second;
    const TrainingCase training = parse_training_case(row.case_name);
    if (!networks.empty() && networks.back().starts_with(training.network() + " "))
      networks.back() += fmt::format(", {}", training.batch_size);
    else
      networks.push_back(row.case_name);
  }
  for (const auto& [kind, networks] : engines)
    findings.push_back(engines.size() == 1
                           ? fmt::format("Engine for all cases on {}: {}.", device, kind)
                           : fmt::format("Engine “{}”: {}.", kind, fmt::join(networks, "; ")));
}

// The gain from threads in the cases that gain the least and the most.
void add_thread_gain(const std::vector<StudyRow>& rows, int cpus, std::vector<std::string>& findings) {
  std::vector<std::pair<double, std::string>> gains;
  for (const CaseRows& group : rows_by_case(rows))
    if (const std::vector<const StudyRow*> swept = swept_rows(group.rows, group.case_name); !swept.empty()) {
      const auto over =
          std::ranges::find_if(swept, [&](const StudyRow* row) { return *row->threads > cpus; });
      const StudyRow& most = over == swept.begin() ? *swept.back() : **(over - 1);
      gains.emplace_back(times_as_fast(most, *swept.front()), group.case_name);
    }
  if (gains.empty()) return;
  const auto [min, max] = std::ranges::minmax_element(gains);
  for (const auto& chosen : min == max ? std::vector{min} : std::vector{min, max})
    for (std::string& finding : thread_findings(rows, chosen->second, "training", cpus))
      findings.push_back(std::move(finding));
}

// Three significant digits, so that the axis reads "813k".
double shown_weights(const TrainingCase& training) {
  return std::strtod(fmt::format("{:.2e}", training.weights()).c_str(), nullptr);
}

std::string line_name(const Line& line, const std::string& device, bool several) {
  return several ? fmt::format("{}, {}", device, line.name()) : line.name();
}

// The spread of the last value, which is inversely proportional to the row's time.
void add_spread(Series& series, const StudyRow& row) {
  const double median_ms = row.value("median_ms");
  series.low.push_back(series.y.back() * median_ms / row.figures["max_ms"].value_or(median_ms));
  series.high.push_back(series.y.back() * median_ms / row.figures["min_ms"].value_or(median_ms));
}

Plot crossover_plot(const std::vector<StudyRow>& rows, const std::vector<Measured>& measured) {
  Plot plot{.title = "Where the GPU becomes faster",
            .x_label = "weights in the network",
            .y_label = "speed-up of the GPU over the CPU: faster above ×1",
            .log_x = true,
            .log_y = true,
            .y_unit = Unit::ratio};
  std::vector<std::string> devices = devices_of(rows);
  std::erase(devices, "cpu");
  double min_weights = 0, max_weights = 0;
  for (const std::string& device : devices)
    for (const auto& [line, networks] : lines_of(measured, device)) {
      Series series{.name = line_name(line, device, devices.size() > 1), .x = {}, .y = {}};
      for (const Measured& one : networks)
        if (one.speedup) {
          series.x.push_back(shown_weights(one.training));
          series.y.push_back(*one.speedup);
          add_spread(series, *one.row);
        }
      if (series.x.empty()) continue;
      min_weights = min_weights == 0 ? series.x.front() : std::min(min_weights, series.x.front());
      max_weights = std::max(max_weights, series.x.back());
      series.color = 1 + static_cast<int>(plot.series.size());
      plot.series.push_back(std::move(series));
    }
  if (!plot.series.empty())
    plot.series.push_back({.name = "as fast as the CPU",
                           .x = {min_weights, max_weights},
                           .y = {1, 1},
                           .dashed = true,
                           .color = 0});
  return plot;
}

Plot throughput_plot(const std::vector<StudyRow>& rows, const std::vector<Measured>& measured) {
  Plot plot{.title = "Training throughput",
            .x_label = "weights in the network",
            .y_label = "samples/s, logarithmic: higher is better",
            .log_x = true,
            .log_y = true};
  const std::vector<std::string> devices = devices_of(rows);
  for (const std::string& device : devices)
    for (const auto& [line, networks] : lines_of(measured, device)) {
      Series series{.name = line_name(line, device, true), .x = {}, .y = {}};
      for (const Measured& one : networks)
        if (one.row->figures["samples_per_s"]) {
          series.x.push_back(shown_weights(one.training));
          series.y.push_back(one.row->value("samples_per_s"));
          add_spread(series, *one.row);
        }
      if (!series.x.empty()) plot.series.push_back(std::move(series));
    }
  return plot;
}

}  // namespace

std::vector<std::string> device_findings(const std::vector<StudyRow>& rows, int cpus) {
  const std::vector<Measured> measured = measured_rows(rows);
  const std::vector<std::string> devices = devices_of(rows);
  std::vector<std::string> findings;
  for (const std::string& device : devices)
    if (device != "cpu") add_crossover(measured, device, findings);
  for (const std::string& device : devices)
    if (device != "cpu") add_copies(measured, device, findings);
  for (const std::string& device : devices) add_batch_gain(measured, device, findings);
  add_thread_gain(rows, cpus, findings);
  for (const std::string& device : devices) add_engines(rows, device, findings);
  return findings;
}

std::vector<Plot> device_plots(const std::vector<StudyRow>& rows, int cpus) {
  const std::vector<Measured> measured = measured_rows(rows);
  std::vector<Plot> plots;
  for (Plot& plot : std::vector{crossover_plot(rows, measured), throughput_plot(rows, measured)})
    if (!plot.series.empty()) plots.push_back(std::move(plot));
  for (Plot& plot : standard_plots(rows, cpus)) plots.push_back(std::move(plot));
  return plots;
}

}  // namespace tandem
