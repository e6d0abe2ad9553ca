#include <gtest/gtest.h>

#include <string>

#include "tandem/study/grade/profile.h"
#include "tandem/study/grade/task.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

const std::string valid = R"(name = "course"
title = "A course"
seed = 7
[curve]
full = 1.5
zero = 8
max_spread = 0.2
[limits]
seconds = 60
call_seconds = 2
compile_seconds = 30
memory_mb = 512
[[part]]
name = "max"
title = "Maximum"
task = "max"
weight = 30
speed = 0.25
reference = "parallel"
cuda_reference = "cuda"
threads = 2
cases = ["10x10 i32", "1x1 f32"]
timed = ["10x10 i32"]
forbidden = ["sleep"]
launch = ["<<<1, 1024>>>"]
[[part]]
name = "steps"
title = "Batches"
task = "batches"
weight = 10
cases = ["10 batch 3"]
)";

// The profile with one text replaced.
std::string with(const std::string& old_text, const std::string& new_text) {
  std::string text = valid;
  const std::size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return text.replace(at, old_text.size(), new_text);
}

std::string problem(const std::string& text) {
  return error_text([&] { parse_profile(text, "p.toml"); });
}

TEST(GradeProfile, AllKeys_AreRead) {
  const GradeProfile profile = parse_profile(valid, "p.toml");
  EXPECT_EQ(profile.name, "course");
  EXPECT_EQ(profile.title, "A course");
  EXPECT_EQ(profile.seed, 7u);
  EXPECT_EQ(profile.curve.full, 1.5);
  EXPECT_EQ(profile.curve.zero, 8);
  EXPECT_EQ(profile.curve.max_spread, 0.2);
  EXPECT_EQ(profile.limits.seconds, 60);
  EXPECT_EQ(profile.limits.call_seconds, 2);
  EXPECT_EQ(profile.limits.compile_seconds, 30);
  EXPECT_EQ(profile.limits.memory_mb, 512);
  ASSERT_EQ(profile.parts.size(), 2u);
  const GradePart& part = profile.parts[0];
  EXPECT_EQ(part.name, "max");
  EXPECT_EQ(part.title, "Maximum");
  EXPECT_EQ(part.weight, 30);
  EXPECT_EQ(part.speed, 0.25);
  EXPECT_EQ(part.reference, Version::parallel);
  EXPECT_EQ(part.cuda_reference, Version::cuda);
  EXPECT_EQ(part.threads, 2);
  EXPECT_EQ(part.cases, (std::vector<std::string>{"10x10 i32", "1x1 f32"}));
  EXPECT_EQ(part.timed, std::vector<std::string>{"10x10 i32"});
  EXPECT_EQ(part.forbidden, std::vector<std::string>{"sleep"});
  EXPECT_EQ(part.launch, std::vector<std::string>{"<<<1, 1024>>>"});
  EXPECT_EQ(profile.parts[1].speed, 0);
  EXPECT_EQ(profile.total(), 40);
  EXPECT_EQ(profile.hash.size(), 64u);
  EXPECT_NE(profile.hash, parse_profile(with("seed = 7", "seed = 8"), "p.toml").hash);
}

TEST(GradeProfile, WrongValue_NamesLineAndKey) {
  const struct {
    const char *old_text, *new_text, *error;
  } wrong[] = {
      {"\"course\"", "\"My Course\"",
       "[profile] p.toml:1: name: expected at most 64 of the characters a-z, 0-9, - and _, got 'My Course'"},
      {"\"A course\"", "3", "[profile] p.toml:2: title: expected a title, got 3"},
      {"seed = 7", "seed = -7",
       "[profile] p.toml:3: seed: expected a whole number from 0 to 9223372036854775807, got -7"},
      {"full = 1.5", "full = 0",
       "[profile] p.toml:5: curve.full: expected a number from 0.01 to 1000000, got 0"},
      {"zero = 8", "zero = 1.5", "[profile] p.toml:6: curve.zero: expected more than 1.5 (full), got 1.5"},
      {"max_spread = 0.2", "max_spread = \"a\"",
       "[profile] p.toml:7: curve.max_spread: expected a number from 0.01 to 10, got a"},
      {"seconds = 60", "seconds = 0",
       "[profile] p.toml:9: limits.seconds: expected a number from 1 to 1000000, got 0"},
      {"call_seconds = 2", "call_seconds = 0",
       "[profile] p.toml:10: limits.call_seconds: expected a number from 0.01 to 10000, got 0"},
      {"compile_seconds = 30", "compile_seconds = 0.5",
       "[profile] p.toml:11: limits.compile_seconds: expected a whole number from 1 to 3600, got 0.5"},
      {"memory_mb = 512", "memory_mb = 1",
       "[profile] p.toml:12: limits.memory_mb: expected a whole number from 64 to 1048576, got 1"},
      {"name = \"max\"", "name = \"../max\"",
       "[profile] p.toml:14: part.name: expected at most 64 of the characters a-z, 0-9, - and _, got "
       "'../max'"},
      {"title = \"Maximum\"", "title = \"\"", "[profile] p.toml:15: part.title: expected a title, got "},
      {"weight = 30", "weight = 0",
       "[profile] p.toml:17: part.weight: expected a number from 0.001 to 1000000, got 0"},
      {"speed = 0.25", "speed = 2", "[profile] p.toml:18: part.speed: expected a number from 0 to 1, got 2"},
      {"\"parallel\"", "\"cuda\"",
       "[profile] p.toml:19: part.reference: expected one of reference, simd, parallel, got 'cuda'"},
      {"cuda_reference = \"cuda\"", "cuda_reference = \"simd\"",
       "[profile] p.toml:20: part.cuda_reference: expected one of cuda-simple, cuda, got 'simd'"},
      {"threads = 2", "threads = -1",
       "[profile] p.toml:21: part.threads: expected a whole number from 0 to 4096, got -1"},
      {"[\"10x10 i32\", \"1x1 f32\"]", "[]",
       "[profile] p.toml:22: part.cases: expected at least one case, got none"},
      {"[\"10x10 i32\", \"1x1 f32\"]", "\"10x10 i32\"",
       "[profile] p.toml:22: part.cases: expected a list of texts, got 10x10 i32"},
      {"\"1x1 f32\"]", "\"10x10 i32\"]", "[profile] p.toml:22: part.cases: '10x10 i32' is there twice"},
      {"timed = [\"10x10 i32\"]", "timed = [\"9x9 i32\"]",
       "[profile] p.toml:23: part.timed: expected some of the part's cases, got '9x9 i32'"},
      {"forbidden = [\"sleep\"]", "forbidden = [1]",
       "[profile] p.toml:24: part.forbidden: expected texts, got 1"},
      {"launch = [\"<<<1, 1024>>>\"]", "launch = 5",
       "[profile] p.toml:25: part.launch: expected a list of texts, got 5"},
      {"[curve]\n", "curve = 1\n[c]\n", "[profile] p.toml:4: curve: expected a table, got 1"},
  };
  for (const auto& one : wrong) EXPECT_EQ(problem(with(one.old_text, one.new_text)), one.error);
}

TEST(GradeProfile, WrongCase_ShowsTheGrammarOfTheTask) {
  EXPECT_NE(problem(with("\"1x1 f32\"", "\"1x f32\""))
                .find("expected a case such as \"1000x1000 i32\", got \"1x f32\""),
            std::string::npos);
  EXPECT_NE(problem(with("10 batch 3", "10 batch 0")).find("expected a case such as \"1000 batch 16\""),
            std::string::npos);
  EXPECT_NE(problem(with("10x10 i32", "200000x200000 i32")).find("expected at most"), std::string::npos);
}

TEST(GradeProfile, UnknownKey_SuggestsASimilarOne) {
  const std::string text = problem(with("seed = 7", "sead = 7"));
  EXPECT_NE(text.find("p.toml:3: unknown key 'sead'"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'seed'?"), std::string::npos) << text;
  EXPECT_NE(problem(with("threads = 2", "thread = 2")).find("unknown key 'part.thread'"), std::string::npos);
  EXPECT_NE(problem(with("memory_mb", "memory")).find("unknown key 'limits.memory'"), std::string::npos);
}

TEST(GradeProfile, UnknownTask_ListsTheTasks) {
  EXPECT_NE(problem(with("task = \"max\"", "task = \"maxx\"")).find("did you mean 'max'?"),
            std::string::npos);
  EXPECT_NE(problem(with("task = \"batches\"\n", "")).find("part steps: expected a key 'task'"),
            std::string::npos);
}

TEST(GradeProfile, MissingKeys_AreNamed) {
  EXPECT_EQ(problem(with("name = \"course\"\n", "")), "[profile] p.toml: expected a key 'name'");
  EXPECT_EQ(problem(with("weight = 30\n", "")), "[profile] p.toml: expected a key 'part.weight'");
  EXPECT_EQ(problem("name = \"a\"\ntitle = \"b\"\n"), "[profile] p.toml: expected a key 'part'");
  EXPECT_EQ(problem("name = \"a\"\ntitle = \"b\"\npart = []\n"),
            "[profile] p.toml:3: part: expected tables [[part]]");
}

TEST(GradeProfile, SameNameTwice_Throws) {
  EXPECT_NE(problem(with("name = \"steps\"", "name = \"max\"")).find("the part 'max' is there twice"),
            std::string::npos);
}

TEST(GradeProfile, SpeedAndTimedCases_BelongTogether) {
  EXPECT_NE(problem(with("timed = [\"10x10 i32\"]\n", "")).find("expected timed cases and points for speed"),
            std::string::npos);
  EXPECT_NE(problem(with("speed = 0.25", "speed = 0")).find("expected timed cases and points for speed"),
            std::string::npos);
  EXPECT_NE(problem(valid + "timed = [\"10 batch 3\"]\n").find("the task batches is not timed"),
            std::string::npos);
}

TEST(GradeProfile, ShippedProfiles_AreValidAndGive100Points) {
  ASSERT_EQ(profile_names().size(), 2u);
  for (const std::string& name : profile_names()) {
    const GradeProfile profile = read_profile(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_EQ(profile.total(), 100) << name;
    EXPECT_FALSE(profile.seed) << "a seed that everybody can read is not hidden";
  }
}

TEST(GradeProfile, UnknownName_ListsTheProfiles) {
  EXPECT_EQ(error_text([] { read_profile("perceptron"); }),
            "[profile] expected perceptron-and-kernels, augmentation-and-correlation or a .toml file, got "
            "'perceptron'; "
            "did you mean 'perceptron-and-kernels'?");
  EXPECT_NE(error_text([] { read_profile("missing.toml"); }).find("missing.toml"), std::string::npos);
}

}  // namespace
}  // namespace tandem
