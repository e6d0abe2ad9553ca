// A small report with every field set, and a check for well-formed markup.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/study_plots.h"
#include "tandem/report/study_report.h"

namespace tandem {

inline StudyReport sample_report() {
  StudyReport report{.study = "max",
                     .title = "Element-wise maximum",
                     .machine = {{"CPU", "Some CPU"}, {"cores", "2"}},
                     .introduction = "C[i][j] = max(A[i][j], B[i][j]).",
                     .rows = {},
                     .findings = {"Memory bandwidth is the limit."},
                     .plots = {}};
  for (const std::string case_name : {"1000×1000 i32", "33×7 f64"}) {
    report.rows.push_back({.case_name = case_name,
                           .version = "reference",
                           .device = "cpu",
                           .figures = {{"median_ms", 2.5}, {"min_ms", 2.25}, {"max_ms", 3}}});
    report.rows.push_back({.case_name = case_name,
                           .version = "cuda",
                           .device = "cuda:0",
                           .threads = 4,
                           .figures = {{"median_ms", 0.005},
                                       {"min_ms", 0.0045},
                                       {"max_ms", 0.0065},
                                       {"with_copies_ms", 0.6},
                                       {"speedup", 500},
                                       {"gb_per_s", 2400},
                                       {"gflop_per_s", 200},
                                       {"share_of_peak", 0.57},
                                       {"max_error", 0}}});
  }
  report.plots = standard_plots(report.rows, 2);
  return report;
}

// Empty when `xml` is one well-formed element (of the XML subset Tandem writes), else the error.
inline std::string xml_fault(std::string_view xml) {
  std::vector<std::string> open;
  bool closed_root = false;
  std::size_t i = 0;
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ':';
  };
  const auto entity_fault = [&](std::size_t at) {
    for (const std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
      if (xml.substr(at, known.size()) == known) return false;
    return true;
  };
  while (i < xml.size()) {
    if (xml[i] != '<') {
      if (xml[i] == '>' || (xml[i] == '&' && entity_fault(i))) return "bare character in text";
      if (open.empty() && !std::isspace(static_cast<unsigned char>(xml[i]))) return "text outside the root";
      ++i;
      continue;
    }
    ++i;
    const bool closing = i < xml.size() && xml[i] == '/';
    if (closing) ++i;
    std::string name;
    while (i < xml.size() && is_name(xml[i])) name += xml[i++];
    if (name.empty()) return "tag without a name";
    std::vector<std::string> attributes;
    bool empty = false;
    while (true) {
      while (i < xml.size() && xml[i] == ' ') ++i;
      if (i >= xml.size()) return "unfinished tag " + name;
      if (xml[i] == '>') break;
      if (xml[i] == '/') {
        empty = true;
        ++i;
        continue;
      }
      std::string attribute;
      while (i < xml.size() && is_name(xml[i])) attribute += xml[i++];
      if (attribute.empty() || xml.substr(i, 2) != "=\"") return "bad attribute in " + name;
      for (const std::string& other : attributes)
        if (other == attribute) return "attribute twice in " + name;
      attributes.push_back(attribute);
      for (i += 2; i < xml.size() && xml[i] != '"'; ++i)
        if (xml[i] == '<' || xml[i] == '>' || (xml[i] == '&' && entity_fault(i)))
          return "bare character in attribute " + attribute;
      ++i;
    }
    ++i;
    if (closing) {
      if (open.empty() || open.back() != name) return "unexpected end of " + name;
      open.pop_back();
    } else {
      if (closed_root) return "second root " + name;
      if (!empty) open.push_back(name);
    }
    closed_root = open.empty();
  }
  if (!open.empty()) return "unclosed " + open.back();
  return closed_root ? "" : "no element";
}

// The values of all attributes with that name, in order.
inline std::vector<std::string> attribute_values(std::string_view xml, const std::string& name) {
  std::vector<std::string> values;
  const std::string start = " " + name + "=\"";
  for (std::size_t at = xml.find(start); at != std::string_view::npos; at = xml.find(start, at)) {
    at += start.size();
    values.emplace_back(xml.substr(at, xml.find('"', at) - at));
  }
  return values;
}

inline int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The body is well-formed XML too, so the same check applies.
inline std::string body_fault(const std::string& html) {
  const std::size_t from = html.find("<body>");
  const std::size_t to = html.find("</body>");
  if (from == std::string::npos || to == std::string::npos) return "no body";
  return xml_fault(std::string_view(html).substr(from, to + 7 - from));
}

}  // namespace tandem
