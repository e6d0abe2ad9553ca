// The options of a pretraining as a configuration file.
#pragma once

#include "tandem/files/toml.h"
#include "tandem/train/pretrain/options.h"

namespace tandem::detail {

// Throws Error for values out of range.
void check_pretrain_options(const PretrainOptions& options);

// What determines the weights, and back. Throws Error for a table that is not one of pretrain_config().
TomlTable pretrain_config(const PretrainOptions& options);
PretrainOptions read_pretrain_config(const TomlTable& config);

}  // namespace tandem::detail
