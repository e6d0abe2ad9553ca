// Models of a server by name, loaded again when their files change.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tandem/device/device.h"
#include "tandem/ops/matmul.h"
#include "tandem/train/decoders/input_reader.h"
#include "tandem/train/model_file.h"

namespace tandem {

// One version of a model. The thread that runs it is its only user, except for `model.info` and `format`.
struct LoadedModel {
  Model model;
  InputFormat format;
};

// What tells versions of a file apart.
struct FileVersion {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t modified_ns = 0;
  off_t bytes = 0;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

// "plates" and its file from "plates=runs/p1", or the name from the path: the file's name without its ending,
// or the run folder's.
struct ModelChoice {
  std::string name;
  std::filesystem::path path;
};
// Throws Error for an empty name or one with control characters.
ModelChoice parse_model_choice(const std::string& text);

class ServedModel {
 public:
  // Loads the model and runs it once, in the precision in which it is used. Throws Error as load_model()
  // does.
  ServedModel(ModelChoice choice, Device device, MatmulPrecision precision);

  const std::string& name() const { return choice_.name; }
  // The newest version, from any thread.
  std::shared_ptr<LoadedModel> current() const;

  enum class Poll { unchanged, reloaded, failed };
  // Loads the file again if it has changed and has been the same for two calls, so that a file that is still
  // being written is left alone. If it cannot be loaded, the old model stays and error() says why. Calls from
  // one thread.
  Poll poll();
  const std::string& error() const { return error_; }

 private:
  std::shared_ptr<LoadedModel> load() const;
  std::optional<FileVersion> file_version() const;

  ModelChoice choice_;
  Device device_;
  MatmulPrecision precision_;
  std::optional<FileVersion> loaded_, seen_, failed_;
  std::string error_;
  mutable std::mutex mutex_;
  std::shared_ptr<LoadedModel> current_;
};

}  // namespace tandem
