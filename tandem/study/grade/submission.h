// A submission: a folder, a zip archive or one source file, copied to a folder of its own before anything in
// it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/files/scratch_folder.h"

namespace tandem {

inline constexpr std::size_t max_submission_files = 1000;
inline constexpr std::uint64_t max_submission_bytes = 100 << 20;

// A submission that cannot be graded, by its own fault.
class SubmissionError : public Error {
 public:
  using Error::Error;
};

struct Submission {
  std::string name;                     // the student's: the file or folder name without extension
  std::string hash;                     // SHA-256 of names and contents
  std::shared_ptr<ScratchFolder> copy;  // readable by everybody, because graded code has other rights
  std::filesystem::path folder;         // in the copy; a single folder around everything is left out
  std::vector<std::string> files;       // relative to `folder`, sorted
};

// Throws SubmissionError when there is nothing to grade and for archives that are damaged, have absolute
// paths, "..", links, more than max_submission_files files or more than max_submission_bytes bytes.
Submission open_submission(const std::filesystem::path& path);

// The hash of what open_submission() would copy, without a copy. Throws the same.
std::string submission_hash(const std::filesystem::path& path);

// The file of a part: PART.cpp, .cc, .cxx, .c, .cu, .py or .so, else kernels.*, else the only such file. None
// when there is no such file; throws Error when there are several.
std::optional<std::filesystem::path> part_file(const Submission& submission, const std::string& part);

// Whether a folder holds submissions (folders and archives) rather than being one: no source file is directly
// in it.
bool is_class_folder(const std::filesystem::path& folder);

// The submissions in a class folder, by name. Hidden files are left out; so are files that are neither
// archives nor sources. Throws Error when there is none, or when two have the same name.
std::vector<std::filesystem::path> submissions_in(const std::filesystem::path& folder);

// The name of the student.
std::string submission_name(const std::filesystem::path& path);

}  // namespace tandem
