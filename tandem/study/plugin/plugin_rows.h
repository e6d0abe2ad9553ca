// Plugins as rows of a study: checked like the versions of Tandem, then measured from outside.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/report/fact.h"
#include "tandem/report/study_row.h"
#include "tandem/study/measure.h"
#include "tandem/study/options.h"
#include "tandem/study/plugin/plugin_file.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct PluginVersion {
  PluginFile file;
  Device device;         // of peers; a user's plugin says itself where it computes
  bool is_peer = false;  // one that cannot compute a case is left out
  std::string program;   // as in KernelProcessOptions
};

// The plugins of the options, then the peers that are installed here.
std::vector<PluginVersion> plugin_versions(const StudyOptions& options);

// What they are, in plain words: of a plugin its file and the command that compiled it.
std::vector<Fact> plugin_legend(const StudyOptions& options);

struct PluginCase {
  std::string function;  // "max"
  std::vector<Tensor> inputs;
  Tensor result;  // of the expected shape and type
  std::function<double(const Tensor& result)> error_of;
  double tolerance = 0;
  std::int64_t bytes = 0;  // read and written
  bool tf32 = false;       // products of reduced precision are allowed
};

enum class PluginResult {
  measured,     // or failed: the row says so
  unsupported,  // a peer that does not have this computation
  unusable      // a peer whose library does not work here; row.failure says why
};

// Fills in the row: its device, error and times, or why there are none.
PluginResult measure_plugin(StudyRow& row, const PluginVersion& plugin, const PluginCase& plugin_case,
                            const MeasureOptions& options);

}  // namespace tandem
