// What the flow of transfer learning took on each device: rows, sentences and plots. From the results alone.
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

// In the order they are shown; `other` is what is left of the whole.
enum class FlowPhase { decode, augment, copy, forward, backward, update, evaluate, predict, other };
inline constexpr std::size_t flow_phase_count = 9;

const char* name_of(FlowPhase phase);

struct FlowResult {
  Device device;
  std::string engine;
  std::int64_t train = 0, validation = 0;  // photographs
  std::array<double, flow_phase_count> phase_ms = {};
  double total_ms = 0;
  std::vector<double> epoch_ms;             // training and judging
  std::vector<double> validation_accuracy;  // after each epoch
  std::vector<std::int32_t> predictions;    // of the fresh plates
  double accuracy = 0;                      // there
  // The model's file gives the outputs of the model that was trained.
  bool file_agrees = true;

  double& operator[](FlowPhase phase) { return phase_ms[static_cast<std::size_t>(phase)]; }
  double operator[](FlowPhase phase) const { return phase_ms[static_cast<std::size_t>(phase)]; }
};

// A share of the predictions that may differ between devices: those of plates between the classes.
inline constexpr double differing_predictions = 0.03;

// The share of the predictions that differ; 1 where their numbers do.
double differing_share(const FlowResult& a, const FlowResult& b);

// Of each device the whole, an epoch and the phases. The first result is what others must agree with.
std::vector<StudyRow> plates_rows(std::span<const FlowResult> results);

std::vector<std::string> plates_findings(std::span<const FlowResult> results);

std::vector<Plot> plates_plots(std::span<const FlowResult> results);

}  // namespace tandem
