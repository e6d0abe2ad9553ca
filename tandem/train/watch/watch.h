// `tandem watch`: follows the folders of runs and shows them, on the whole terminal or as plain lines.
#pragma once

#include <string>
#include <vector>

#include "tandem/text/styled_line.h"

namespace tandem {

struct WatchOptions {
  std::vector<std::string> paths;  // of runs, or of folders with runs; runs that are started later are added
  std::size_t max_runs = 20;       // of each folder with runs
  TerminalStyle style;
};

// All throw Error if there is no run.

// Shows runs until q is pressed. Standard output must be a terminal. Returns the signal that has ended it, or
// 0.
int watch_on_terminal(const WatchOptions& options);

// One line per epoch on standard output, until all runs have ended. Returns whether all have finished, in
// place of being stopped, failing or disappearing.
bool watch_as_lines(const WatchOptions& options);

// What watch_on_terminal() shows at first, on standard output.
void watch_once(const WatchOptions& options);

// Whether the locale of the environment has UTF-8.
bool is_utf8_locale();

}  // namespace tandem
