#include "tandem/study/grade/grade.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "tandem/study/grade/array_difference.h"
#include "tandem/study/grade/source_rules.h"
#include "tandem/study/grade/task.h"
#include "tests/core/error_text.h"
#include "tests/paths.h"
#include "tests/process/orphans.h"
#include "tests/study/grading.h"
#include "tests/study/plugin_trial.h"

namespace tandem {
namespace {

// ---- differences ----

TEST(ArrayDifference, EqualArrays_HaveNone) {
  const Tensor a({{1., 2.}, {3., 4.}});
  EXPECT_FALSE(difference_of(a, a.clone(), 0));
  EXPECT_FALSE(difference_of(Tensor({{1., 100.}}), Tensor({{1.0009, 100.}}), 1e-5));
}

TEST(ArrayDifference, Sentence_NamesTheFirstWrongElement) {
  const auto found =
      difference_of(Tensor({{1., 2.}, {3., 4.}}, DType::i32), Tensor({{1., 2.}, {7., 0.}}, DType::i32), 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sentence, "2 of 4 elements are wrong: element (1, 0) is 7, expected 3");
  ASSERT_EQ(found->pictures.size(), 3u);
  EXPECT_EQ(found->pictures[0].caption, "expected");
  EXPECT_TRUE(found->pictures[0].png.starts_with("\x89PNG"));
}

TEST(ArrayDifference, ToleranceIsRelativeToTheLargestMagnitude) {
  const auto found = difference_of(Tensor({{1., -100.}}), Tensor({{1.0011, -100.}}), 1e-5);
  ASSERT_TRUE(found);
  EXPECT_NE(found->sentence.find("the largest error is 0.0011, allowed is 0.001"), std::string::npos)
      << found->sentence;
}

TEST(ArrayDifference, NanEqualsNothing) {
  const Tensor nan({{std::nan(""), 1.}});
  EXPECT_TRUE(difference_of(nan, nan, 1));
  EXPECT_TRUE(difference_of(Tensor({{1., 1.}}), nan, 1));
}

TEST(ArrayDifference, LargeArrays_ShowAWindowAndTheWhole) {
  const Tensor expected = Tensor::from(std::vector<float>(200 * 300, 0.0f), {200, 300});
  Tensor got = expected.clone();
  got.data<float>()[150 * 300 + 250] = 1;
  const auto found = difference_of(expected, got, 0);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->pictures.size(), 4u);
  EXPECT_EQ(found->pictures[0].caption, "expected, rows 134–165, columns 234–265");
  EXPECT_EQ(found->pictures[3].caption, "wrong elements of all 200×300");
}

// ---- rules ----

TEST(SourceRules, Identifiers_AreFoundInCodeOnly) {
  const auto used = [](const std::string& text, SourceLanguage language) {
    return used_identifier(text, language, {"sleep", "usleep"});
  };
  EXPECT_EQ(used("void f() { usleep(3); }", SourceLanguage::c), "usleep");
  EXPECT_EQ(used("// sleep\n/* sleep */ int sleeper = 1'000; f(\"sleep\\\"\");", SourceLanguage::c), "");
  EXPECT_EQ(used("/* a */ sleep(1)", SourceLanguage::c), "sleep");
  EXPECT_EQ(used("import time\ntime.sleep(1)", SourceLanguage::python), "sleep");
  EXPECT_EQ(used("'''sleep\nsleep''' # sleep\nx = 'sleep'", SourceLanguage::python), "");
}

TEST(SourceRules, Fragments_AreFoundWhateverTheSpaces) {
  const std::vector<std::string> launch{"<<<1, 1024>>>"};
  EXPECT_TRUE(has_fragment("f <<< 1,\n 1024 >>>(x);", SourceLanguage::c, launch));
  EXPECT_FALSE(has_fragment("f<<<2, 1024>>>(x); // <<<1, 1024>>>", SourceLanguage::c, launch));
}

// ---- tasks ----

Tensor matrix(std::initializer_list<std::initializer_list<double>> rows, DType dtype) {
  return Tensor(rows, dtype);
}

std::vector<Tensor> expected_of(const std::string& task, const std::string& name,
                                const std::vector<Tensor>& inputs) {
  return grade_tasks().get(task).make(name).expected(inputs);
}

TEST(GradeTasks, Shift_MovesLeftAndUp) {
  const std::vector<Tensor> out = expected_of(
      "shift", "2x3 u8",
      {matrix({{1, 2, 3}, {4, 5, 6}}, DType::u8), matrix({{1}}, DType::i64), matrix({{1}}, DType::i64)});
  EXPECT_EQ(out[0].to_vector<int>(), (std::vector<int>{5, 6, 0, 0, 0, 0}));
}

TEST(GradeTasks, Skew_RoundsDown) {
  const std::vector<Tensor> out = expected_of(
      "skew", "2x3 u8", {matrix({{1, 2, 3}, {4, 5, 6}}, DType::u8), matrix({{-0.5}}, DType::f64)});
  EXPECT_EQ(out[0].to_vector<int>(), (std::vector<int>{1, 2, 3, 0, 4, 5}));
}

TEST(GradeTasks, Batches_LastOneHasTheRemainder) {
  const std::vector<Tensor> out = expected_of("batches", "7 batch 3", {});
  EXPECT_EQ(out[0].to_vector<int>(), (std::vector<int>{0, 3, 3, 3, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(out[1].item<int>(), 3);
}

TEST(GradeTasks, Workers_FlagThenSlurmThenCpus) {
  const auto count = [](double requested, double slurm, double cpus) {
    return expected_of("workers", "cpus",
                       {matrix({{requested}}, DType::i64), matrix({{slurm}}, DType::i64),
                        matrix({{cpus}}, DType::i64)})[0]
        .item<int>();
  };
  EXPECT_EQ(count(5, 3, 8), 5);
  EXPECT_EQ(count(0, 3, 8), 3);
  EXPECT_EQ(count(0, 0, 8), 8);
  EXPECT_EQ(count(0, 0, 1), 2);
}

TEST(GradeTasks, Gradients_EqualDifferencesOfTheLoss) {
  const TaskCase task = grade_tasks().get("gradients").make("3,2,4 batch 5");
  std::vector<Tensor> in = task.inputs(3);
  const auto loss = [&] {  // by plain loops
    const auto v = [&](std::size_t i, std::int64_t at) { return in[i].data<double>()[at]; };
    double sum = 0;
    for (int s = 0; s < 5; ++s) {
      double a[2], z[4], total = 0;
      for (int j = 0; j < 2; ++j) {
        double t = v(3, j);
        for (int i = 0; i < 3; ++i) t += v(2, j * 3 + i) * v(0, s * 3 + i);
        a[j] = 1 / (1 + std::exp(-t));
      }
      for (int k = 0; k < 4; ++k) {
        z[k] = v(5, k) + v(4, k * 2) * a[0] + v(4, k * 2 + 1) * a[1];
        total += std::exp(z[k]);
      }
      for (int k = 0; k < 4; ++k) sum -= v(1, s * 4 + k) * (z[k] - std::log(total)) / 5;
    }
    return sum;
  };
  const std::vector<Tensor> gradients = task.expected(in);
  ASSERT_EQ(gradients.size(), 4u);
  for (std::size_t g = 0; g < 4; ++g)
    for (std::int64_t i = 0; i < gradients[g].numel(); ++i) {
      double& weight = in[g + 2].data<double>()[i];
      const double before = weight, step = 1e-5;
      weight = before + step;
      const double up = loss();
      weight = before - step;
      const double down = loss();
      weight = before;
      EXPECT_NEAR(gradients[g].data<double>()[i], (up - down) / (2 * step), 1e-8);
    }
}

TEST(GradeTasks, Inputs_DifferFromSeedToSeed) {
  for (const GradeTask& task : grade_tasks().rows()) {
    if (task.name == "batches") continue;  // its input is the case itself
    const TaskCase made = task.make(task.cases);
    EXPECT_TRUE(difference_of(made.inputs(1)[0], made.inputs(2)[0], 0) || made.inputs(1).size() > 2)
        << task.name;
    EXPECT_FALSE(difference_of(made.inputs(1)[0], made.inputs(1)[0], 0)) << task.name;
  }
}

TEST(GradeTasks, WrongCase_ShowsAnExample) {
  for (const GradeTask& task : grade_tasks().rows()) {
    task.make(task.cases);
    EXPECT_NE(error_text([&] { task.make("nonsense"); }).find("expected"), std::string::npos) << task.name;
  }
}

// ---- submissions ----

const std::string python_solution = R"(
import numpy as np
def xavier(fan_in, fan_out, seed, out):
    bound = np.sqrt(6 / (fan_in[0, 0] + fan_out[0, 0]))
    out[...] = np.random.default_rng(int(seed[0, 0])).uniform(-bound, bound, out.shape)
def noise(image, amount, seed, out):
    added = np.random.default_rng(int(seed[0, 0])).uniform(-amount[0, 0], amount[0, 0], image.shape)
    out[...] = np.clip(image + added, 0, 1)
)";

TEST(Grade, RandomResults_AreCheckedByTheirStatistics) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  const GradeProfile xavier = one_part_profile("xavier", "\"50,80\"", ""),
                     noise = one_part_profile("noise", "\"60x60 f32\"", "");
  EXPECT_EQ(grade_text_file("kernels.py", python_solution, xavier).points(), 100);
  EXPECT_EQ(grade_text_file("kernels.py", python_solution, noise).points(), 100);
  const auto problem = [](const std::string& code, const GradeProfile& profile) {
    return grade_text_file("kernels.py", "import numpy as np\n" + code, profile).parts[0].cases[0].problem;
  };
  EXPECT_NE(problem("def xavier(i, o, s, out): out[...] = np.random.uniform(-1, 1, out.shape)", xavier)
                .find("the bound is"),
            std::string::npos);
  EXPECT_NE(problem("def xavier(i, o, s, out): out[...] = 0", xavier).find("the variance is 0"),
            std::string::npos);
  EXPECT_NE(
      problem("def xavier(i, o, s, out): out[...] = np.random.default_rng(1).uniform(-.21, .21, out.shape)",
              xavier)
          .find("those of another seed"),
      std::string::npos);
  EXPECT_NE(
      problem("def noise(x, a, s, out): out[...] = x + np.random.uniform(-a[0, 0], a[0, 0], x.shape)", noise)
          .find("it is not clipped"),
      std::string::npos);
  EXPECT_NE(
      problem("def noise(x, a, s, out): out[...] = np.clip(x + np.random.uniform(-a[0, 0], a[0, 0]), 0, 1)",
              noise),
      "");
}

TEST(Grade, WrongResult_HasSentenceAndPictures) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  const GradeProfile profile = one_part_profile("shift", "\"28x28 u8\"", "");
  const GradeReport report = grade_text_file(
      "shift.py",
      "import numpy as np\ndef shift(image, dx, dy, out): out[...] = np.roll(image, (1, 1), (0, 1))",
      profile);
  ASSERT_EQ(report.parts[0].cases.size(), 1u);
  const GradedCase& wrong = report.parts[0].cases[0];
  EXPECT_NE(wrong.problem.find("elements are wrong"), std::string::npos) << wrong.problem;
  EXPECT_EQ(wrong.pictures.size(), 3u);
  EXPECT_EQ(report.points(), 0);
}

TEST(Grade, MissingFileAndCompilerError_AreProblemsOfThePart) {
  const GradeProfile profile = one_part_profile("max", "\"2x2 i32\"", "");
  const TempFolder folder;
  std::filesystem::create_directory(folder / "student");
  write_file("test", folder / "student/xxt.c", std::string_view("int x;"));
  write_file("test", folder / "student/other.c", std::string_view("int y;"));
  const GradeReport missing = grade(open_submission(folder / "student"), profile, {.program = program_file});
  EXPECT_EQ(missing.parts[0].problem,
            "There is no file for this part: expected max.cpp, max.c, max.cu, max.py or max.so.");
  const GradeReport broken = grade_text_file("max.c", "int tandem_max(", profile);
  EXPECT_TRUE(broken.parts[0].problem.starts_with("max.c cannot be compiled: max.c:1:"))
      << broken.parts[0].problem;
  EXPECT_EQ(broken.points(), 0);
}

TEST(Grade, ForbiddenIdentifier_CostsThePart) {
  GradeProfile profile = one_part_profile("max", "\"2x2 i32\"", "");
  profile.parts[0].forbidden = {"sleep"};
  const GradeReport report =
      grade_text_file("max.py", "import time\ndef max(a, b, out): time.sleep(1)", profile);
  EXPECT_EQ(report.parts[0].problem, "max.py uses sleep, which the rules of this part forbid.");
  profile.parts[0].launch = {"<<<rows, columns>>>"};
  const GradeReport shape = grade_text_file("max.cu", "void f() { k<<<1, 32>>>(); }", profile);
  EXPECT_EQ(shape.parts[0].problem,
            "max.cu has no launch <<<rows, columns>>>, which the rules of this part ask for.");
}

TEST(Grade, Environment_HasTheThreadsAndNothingOfTheTeacher) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  GradeProfile profile = one_part_profile("workers", "\"cpus\"", "");
  profile.parts[0].threads = 3;
  ASSERT_EQ(setenv("TANDEM_TEST_SECRET", "password", 1), 0);
  const GradeReport report = grade_text_file("workers.py", R"(
import os
def workers(requested, slurm, cpus, out):
    raise RuntimeError(f"{os.environ.get('TANDEM_TEST_SECRET')} {os.environ['OPENBLAS_NUM_THREADS']}")
)",
                                             profile);
  unsetenv("TANDEM_TEST_SECRET");
  EXPECT_NE(report.parts[0].cases[0].problem.find("RuntimeError: None 3"), std::string::npos)
      << report.parts[0].cases[0].problem;
}

TEST(Grade, TimesOutEverywhere_EndsInTime) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  GradeProfile profile = one_part_profile("max", "\"2x2 i32\", \"3x3 i32\", \"4x4 i32\", \"5x5 i32\"", "");
  profile.limits.call_seconds = 0.5;
  profile.limits.seconds = 1;
  const GradeReport report = grade_text_file("max.py", "def max(a, b, out):\n  while True: pass", profile);
  EXPECT_EQ(report.points(), 0);
  const std::vector<GradedCase>& cases = report.parts[0].cases;
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases.back().problem, "not run: the time of the submission, 1 s, was used up");
}

// ---- the queue ----

// Every frame names its writer and is written atomically, so no lock is needed.
const std::string good_queue = R"(
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { int32_t writer, bytes; int64_t size, at; } Frame;
typedef struct { int read, write; char* parts[65536]; } Queue;
void* tandem_queue_create(void) {
  Queue* queue = (Queue*)calloc(1, sizeof(Queue));
  int fds[2];
  if (pipe(fds)) return 0;
  queue->read = fds[0], queue->write = fds[1];
  return queue;
}
int tandem_queue_put(void* q, const void* message, int64_t size) {
  char buffer[PIPE_BUF];
  Frame frame = {(int32_t)(getpid() % 65536), 0, size, 0};
  const int64_t room = PIPE_BUF - (int64_t)sizeof frame;
  do {
    frame.bytes = (int32_t)(size - frame.at < room ? size - frame.at : room);
    memcpy(buffer, &frame, sizeof frame);
    memcpy(buffer + sizeof frame, (const char*)message + frame.at, frame.bytes);
    if (write(((Queue*)q)->write, buffer, sizeof frame + frame.bytes) < 0) return 1;
    frame.at += frame.bytes;
  } while (frame.at < size);
  return 0;
}
static void read_all(int fd, void* to, int64_t size) {
  for (int64_t at = 0; at < size;) at += read(fd, (char*)to + at, size - at);
}
int64_t tandem_queue_get(void* q, void* message, int64_t capacity) {
  Queue* queue = (Queue*)q;
  for (;;) {
    Frame frame;
    read_all(queue->read, &frame, sizeof frame);
    char** part = &queue->parts[frame.writer];
    if (frame.at == 0) *part = (char*)realloc(*part, frame.size);
    read_all(queue->read, *part + frame.at, frame.bytes);
    if (frame.at + frame.bytes < frame.size) continue;
    memcpy(message, *part, frame.size);
    return frame.size;
  }
}
)";

const std::string blocked_python_queue = R"(
import multiprocessing, os, struct
class Queue:
    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        self.lock = multiprocessing.Lock()
    def put(self, message):
        with self.lock:
            data = struct.pack("<q", len(message)) + message
            while data:
                data = data[os.write(self.write_end, data):]
    def take(self, size):
        data = b""
        while len(data) < size: data += os.read(self.read_end, size - len(data))
        return data
    def get(self):
        return self.take(struct.unpack("<q", self.take(8))[0])
)";

TEST(GradeQueue, GoodQueue_SurvivesAKilledWriter) {
  const GradeProfile profile =
      one_part_profile("queue", "\"1 writer\", \"8 writers\", \"8 writers, one killed\"", "");
  const GradeReport report = grade_text_file("queue.c", good_queue, profile);
  EXPECT_EQ(report.parts[0].problem, "");
  for (const GradedCase& one : report.parts[0].cases) EXPECT_EQ(one.problem, "") << one.name;
}

TEST(GradeQueue, LockThatDiesWithItsWriter_IsFound) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  GradeProfile profile = one_part_profile("queue", "\"8 writers\", \"8 writers, one killed\"", "");
  profile.limits.call_seconds = 3;
  const GradeReport report = grade_text_file("kernels.py", blocked_python_queue, profile);
  EXPECT_EQ(report.parts[0].problem, "");
  ASSERT_EQ(report.parts[0].cases.size(), 2u);
  EXPECT_EQ(report.parts[0].cases[0].problem, "");
  EXPECT_EQ(report.parts[0].cases[1].problem, "kernels.py took longer than 3 s");
}

TEST(GradeQueue, UnlockedWrites_AreFound) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  std::string code = blocked_python_queue;
  code.replace(code.find("with self.lock:"), 15, "if True:");
  code.replace(code.find("data = data[os.write(self.write_end, data):]"), 44,
               "data = data[os.write(self.write_end, data[:100]):]; os.sched_yield()");
  GradeProfile profile = one_part_profile("queue", "\"8 writers\"", "");
  profile.limits.call_seconds = 3;
  const Orphans orphans;
  EXPECT_NE(grade_text_file("kernels.py", code, profile).parts[0].cases[0].problem, "");
  EXPECT_EQ(orphans.count(), 0);  // the reader fails and the writers wait
}

}  // namespace
}  // namespace tandem
