// Grades source text in tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tandem/core/write_file.h"
#include "tandem/study/grade/grade.h"
#include "tests/image/test_files.h"
#include "tests/paths.h"

namespace tandem {

inline GradeReport grade_text_file(const std::string& file, const std::string& source,
                                   const GradeProfile& profile, std::uint64_t seed = 5) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "student");
  write_file("test", folder / ("student/" + file), source);
  return grade(open_submission(folder / "student"), profile,
               {.seed = seed, .program = program_file, .measured_ms = 20});
}

// One part with one task; `timed` is one of the cases, or empty.
inline GradeProfile one_part_profile(const std::string& task, const std::string& cases,
                                     const std::string& timed) {
  const std::string speed =
      timed.empty() ? "" : "speed = 0.5\ntimed = [\"" + timed + "\"]\nreference = \"simd\"\n";
  return parse_profile(
      "name = \"test\"\ntitle = \"Test\"\n[limits]\nseconds = 60\ncall_seconds = 5\n[[part]]\nname = \"" +
          task + "\"\ntitle = \"Part\"\nweight = 100\ncases = [" + cases + "]\n" + speed,
      "test.toml");
}

}  // namespace tandem
