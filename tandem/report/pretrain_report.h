// The report of a pretraining run: its log as CSV, and a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/report/pretrain_record.h"

namespace tandem {

std::string pretrain_csv_header();
std::string pretrain_csv_row(const PretrainRecord& record);

struct PretrainReport {
  std::string title;
  std::string command;
  std::vector<Fact> facts;
  std::vector<Fact> provenance;
  std::vector<PretrainRecord> records;
  std::int64_t steps = 0;          // of the whole run
  std::vector<std::string> views;  // PNG files: two views of each of some images
};

std::string pretrain_page(const PretrainReport& report);

}  // namespace tandem
