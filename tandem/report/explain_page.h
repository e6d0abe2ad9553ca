// Explained predictions as a page: every photograph beside the map of where its class was found.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/report/fact.h"

namespace tandem {

struct ExplainedPicture {
  std::string path;
  std::string photo = {}, overlay = {};  // bytes of JPEG files
  std::string predicted = {};            // class names
  double probability = 0;                // of the predicted class
  std::string explained = {};            // the class of the map
  double explained_probability = 0;
  std::string truth = {};  // empty: unknown
  bool is_empty = false;   // nothing speaks for the class
  std::string error = {};  // why the file was not read; then nothing else is known
};

struct ExplainReport {
  std::vector<Fact> facts;
  std::vector<ExplainedPicture> pictures;
  std::size_t files = 0;   // from which the pictures were chosen
  bool uncovered = false;  // whether the model does not see all of the photographs
  std::string command;
  std::vector<Fact> provenance;
};

// What the colors mean, in one or two sentences.
std::string heat_legend_text(bool uncovered);

// The scale of the colors and heat_legend_text().
std::string heat_legend_html(bool uncovered);
// Its style sheet (CSS).
std::string heat_legend_style();

std::string explain_page(const ExplainReport& report);

}  // namespace tandem
