// Finds the names that loading a file in Python could import or call, wherever they stand: in any of several
// pickles one after the other, in members of zip and tar archives, in gzip and NumPy files, in a pickle that
// is cut off or damaged, and in an archive that cannot be read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/files/pth.h"
#include "tandem/files/unpickle.h"

namespace tandem {

struct PickleScan {
  std::vector<PthName> names;  // in order of appearance, each once
  std::string problem;         // what could not be read completely; empty if nothing
};

// Never throws for what the file contains. Time and memory are linear in its size. In a file that is not
// known to be a pickle (`is_pickle` is false) only what looks like a name is believed.
PickleScan scan_pickles(std::string_view bytes, const std::string& name, bool is_pickle = true);

// Whether the bytes can begin a pickle: PROTO, or a value in protocols 0 and 1.
bool begins_like_pickle(std::string_view bytes);

// 0x1950a86a20f9469cfc6c, the first pickle of torch.save's legacy format.
bool is_legacy_magic(const PickleValue& value);

// The pickles of the legacy format: magic number, protocol version, system info; the object; storage keys.
inline constexpr int legacy_header_pickles = 3, legacy_pickles = 5;

}  // namespace tandem
