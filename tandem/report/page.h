// The shell of every HTML report: one self-contained file with inline style, a header with the machine facts,
// a table of contents when there are several sections, and the sections. Members whose names end in _html are
// markup and are inserted as they are; all others are text and are escaped here.
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
  Verdict verdict = Verdict::none;  // shown as a mark in the table of contents
  bool hidden = false;              // until the script of the page shows it
};

struct Page {
  std::string title;
  std::string summary;  // one line under the title
  Verdict verdict = Verdict::none;
  std::string lead_html;  // placed before the facts
  std::vector<Fact> facts;
  std::vector<PageSection> sections;
  std::string footer_html;
  std::vector<Fact> provenance;  // provenance(), provenance.h; shown at the end of the page
  std::string style;             // page-specific CSS, added after the common style
  std::string head_html = {};
  std::string data = {};     // JSON for the script, in an element with the id "data"
  std::string script = {};   // JavaScript, at the end of the page
  bool has_contents = true;  // a table of contents, if there are several sections
};

std::string html_page(const Page& page);

// The facts as a definition list.
std::string facts_html(const std::vector<Fact>& facts);

// A table in a box that scrolls when the table is larger, also with the keyboard. `label` names the box for
// screen readers, `classes` are added to its class.
std::string scroll_box(const std::string& label, const std::string& table_html, const char* classes = "");

// Plots as cards, two per row where there is room.
std::string plots_html(const std::vector<Plot>& plots);

}  // namespace tandem
