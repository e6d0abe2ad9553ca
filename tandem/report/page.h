// The shell of every HTML report: one self-contained file with its style inside, a header with the machine's
// facts, contents when there are several sections, and the sections. What a section holds is its maker's
// business; members whose names end in _html are markup, all others are text and get escaped here.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/report/plot.h"

namespace tandem {

enum class Verdict { none, good, bad };

struct PageSection {
  std::string title;
  std::string body_html;
  Verdict verdict = Verdict::none;  // shown as a mark in the contents
};

struct Page {
  std::string title;
  std::string summary;  // one line under the title
  Verdict verdict = Verdict::none;
  std::string lead_html;  // stands before the facts
  std::vector<Fact> facts;
  std::vector<PageSection> sections;
  std::string footer_html;
  std::string style;  // CSS of its own, after the common one
};

std::string html_page(const Page& page);

// The facts as a list of names and values.
std::string facts_html(const std::vector<Fact>& facts);

// Plots as cards, two beside each other where there is room.
std::string plots_html(const std::vector<Plot>& plots);

}  // namespace tandem
