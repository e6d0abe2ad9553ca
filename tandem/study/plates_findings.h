// Rows, findings and plots from the measured transfer-learning flow on each device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

// In display order; `other` is the rest of the total time.
enum class FlowPhase { decode, augment, copy, forward, backward, update, evaluate, predict, other };
inline constexpr std::size_t flow_phase_count = 9;

const char* name_of(FlowPhase phase);

struct FlowResult {
  Device device;
  std::string engine;
  std::int64_t train = 0;       // training photographs
  std::int64_t validation = 0;  // validation photographs
  std::array<double, flow_phase_count> phase_ms = {};
  double total_ms = 0;
  std::vector<double> epoch_ms;             // training and validation
  std::vector<double> validation_accuracy;  // after each epoch
  std::vector<std::int32_t> predictions;    // for the test plates
  double accuracy = 0;                      // on the test plates
  bool file_agrees = true;                  // the saved model gives the outputs of the trained one

  double& operator[](FlowPhase phase) { return phase_ms[static_cast<std::size_t>(phase)]; }
  double operator[](FlowPhase phase) const { return phase_ms[static_cast<std::size_t>(phase)]; }
};

// The share of predictions that may differ between devices: plates close to the decision boundary.
inline constexpr double max_differing_share = 0.03;

std::string epochs_text(std::int64_t epochs);  // "1 epoch", "3 epochs"

// The share of predictions that differ; 1 when the counts differ.
double differing_share(const FlowResult& a, const FlowResult& b);

// The whole flow, one epoch and each phase per device. The first result is the reference for the others.
std::vector<StudyRow> plates_rows(std::span<const FlowResult> results);

std::vector<std::string> plates_findings(std::span<const FlowResult> results);

std::vector<Plot> plates_plots(std::span<const FlowResult> results);

}  // namespace tandem
