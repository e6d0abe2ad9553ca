// What a run trains and validates on: its classes and the name and label of every sample. It is kept with
// the run, so that a resume notices that the data changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/files/safetensors.h"
#include "tandem/train/training_data.h"

namespace tandem {

struct DataList {
  struct Sample {
    std::int32_t label = 0;
    std::string name;  // its path
    friend bool operator==(const Sample&, const Sample&) = default;
  };

  std::vector<std::string> classes;
  std::vector<Sample> training, validation;  // empty for images without names
  std::vector<std::string> unreadable;       // validation images that could not be read
  std::int64_t training_count = 0, validation_count = 0;
  std::string labels_digest;  // of all labels, in order

  // JSON with one sample per line.
  std::string to_text() const;
  std::string digest() const;  // SHA-256 of the text without the unreadable ones
};

DataList list_data(const TrainingData& data);
// Throws Error if the text is not one of to_text().
DataList parse_data_list(const std::string& text, const std::string& name);

// A name as the list stores it: bytes that are not UTF-8 are replaced.
std::string listed_name(const std::string& name);

// "class 3 was 'cat', is 'dog'" or "photograph x.jpg is new"; empty if nothing differs.
std::string first_difference(const DataList& before, const DataList& now);

// How the data differs from that of a checkpoint, which has the digest of its list; the list itself, in
// `file`, tells what changed. Empty if nothing did.
std::string data_difference(const TensorFile& checkpoint, const std::filesystem::path& file,
                            const DataList& now);

}  // namespace tandem
