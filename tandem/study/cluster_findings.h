// Findings and plots of the cluster study.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"
#include "tandem/study/cluster_case.h"
#include "tandem/study/cluster_model.h"

namespace tandem {

inline constexpr std::string_view modelled_basis = "modelled";

// What is known of one case. The rows of this machine, by increasing number of ranks, then the modelled ones.
struct ClusterResult {
  ClusterCase study_case;
  std::vector<StudyRow> measured;
  std::vector<StudyRow> here;       // modelled: more ranks on this machine than the model was fitted to
  std::vector<StudyRow> simulated;  // modelled: larger clusters
  std::vector<int> fitted;          // the numbers of ranks that the model was fitted to
  std::optional<ClusterModel> model;
};

// The prediction for ranks that are computers like the model's: `images` per rank and step.
StudyRow modelled_row(const std::string& case_name, const std::string& version, int ranks, double images,
                      const Prediction& prediction);

std::vector<std::string> cluster_findings(const ClusterResult& result);

// `sizes`: the clusters that were asked for.
std::vector<Plot> cluster_plots(const ClusterResult& result, const std::vector<ClusterSize>& sizes,
                                int usable_cpus);

}  // namespace tandem
