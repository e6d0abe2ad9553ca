// Published ways to cheat a grader of kernels (docs/grading.md lists them by these names). Each is graded
// here and must not score more than an honest solution that is correct and slow: half of the points.
#include <gtest/gtest.h>

#include <string>

#include "tests/core/sanitized.h"
#include "tests/process/orphans.h"
#include "tests/study/grading.h"
#include "tests/study/plugin_trial.h"

namespace tandem {
namespace {

constexpr bool sanitized = address_sanitized || thread_sanitized;

constexpr double honest_points = 50;  // all for correctness, none for speed

// slow() takes a hundred times as long as the reference, fast() computes the same at once. Cheats whose aim
// is to get at something call fast() when they got it, and return without a result when they did not.
const std::string prelude = R"(
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <tandem/plugin.h>
int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }
static int64_t count_of(const TandemCall* c) { return c->inputs[0].rows * c->inputs[0].columns; }
static void fast(const TandemCall* c) {
  const int32_t *a = c->inputs[0].data, *b = c->inputs[1].data;
  int32_t* out = c->outputs[0].data;
  for (int64_t i = 0; i < count_of(c); ++i) out[i] = a[i] > b[i] ? a[i] : b[i];
}
static int is_pipe(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode) && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}
static void slow(const TandemCall* c) {
  for (int i = 0; i < 100; ++i) {
    fast(c);
    __asm__ volatile("" ::: "memory");
  }
}
)";

double points_of(const std::string& code) {
  const GradeProfile profile = one_part_profile("max", "\"300x1000 i32\"", "300x1000 i32");
  const Orphans orphans;
  const GradeReport report = grade_text_file("max.c", prelude + code, profile);
  EXPECT_EQ(orphans.count(), 0);
  EXPECT_EQ(report.parts[0].problem, "") << "the cheat does not compile";
  for (const GradedCase& one : report.parts[0].cases)
    if (!one.problem.empty()) testing::Test::RecordProperty("problem", one.problem);
  return report.points();
}

double python_points_of(const std::string& code) {
  const GradeProfile profile = one_part_profile("max", "\"300x1000 i32\"", "300x1000 i32");
  return grade_text_file("max.py", code, profile).points();
}

TEST(GradeCheats, HonestSlowSolution_IsTheMeasure) {
  if (sanitized) GTEST_SKIP() << "the reference is slow, too";
  EXPECT_DOUBLE_EQ(points_of("int tandem_max(const TandemCall* c) { slow(c); return 0; }"), honest_points);
}

TEST(GradeCheats, HonestFastSolution_IsNotWorse) {
  EXPECT_GE(points_of("int tandem_max(const TandemCall* c) { fast(c); return 0; }"), honest_points);
}

TEST(GradeCheats, ReadingTheExpectedResult_ByProcMem_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", getppid());
  if (open(path, O_RDONLY) >= 0) fast(c);
  snprintf(path, sizeof path, "/proc/%d/maps", getppid());
  if (open(path, O_RDONLY) >= 0) fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, ReadingTheExpectedResult_BySystemCall_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  char here[8];
  struct iovec to = {here, 8}, from = {(void*)0x400000, 8};
  if (process_vm_readv(getppid(), &to, 1, &from, 1, 0) >= 0 || errno == EFAULT) fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, AnsweringFromACache_Fails) {
  EXPECT_LE(points_of(R"(
static void* known[64];
static int32_t* answers[64];
int tandem_max(const TandemCall* c) {
  int i = 0;
  while (known[i] && known[i] != c->inputs[0].data) ++i;
  if (known[i]) {
    memcpy(c->outputs[0].data, answers[i], count_of(c) * 4);
    return 0;
  }
  slow(c);
  known[i] = c->inputs[0].data;
  answers[i] = malloc(count_of(c) * 4);
  memcpy(answers[i], c->outputs[0].data, count_of(c) * 4);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, HardCodedAnswerForAShape_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  memset(c->outputs[0].data, 0, count_of(c) * 4);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, LazyResult_ComputedAtTheNextCall_Fails) {
  EXPECT_LE(points_of(R"(
static TandemCall last;
static TandemArray arrays[3];
int tandem_max(const TandemCall* c) {
  if (last.inputs) slow(&last);
  arrays[0] = c->inputs[0], arrays[1] = c->inputs[1], arrays[2] = c->outputs[0];
  last = *c;
  last.inputs = arrays, last.outputs = arrays + 2;
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, PatchedClock_Fails) {
  if (sanitized) GTEST_SKIP() << "the reference is slow, too";
  EXPECT_LE(points_of(R"(
int clock_gettime(clockid_t clock, struct timespec* time) { time->tv_sec = time->tv_nsec = 0; return 0; }
int gettimeofday(struct timeval* time, void* zone) { time->tv_sec = time->tv_usec = 0; return 0; }
int tandem_max(const TandemCall* c) {
  struct timespec past = {0, 0};
  clock_settime(CLOCK_REALTIME, &past);
  slow(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, DetectingTheWarmUp_Fails) {
  EXPECT_LE(points_of(R"(
static int calls;
int tandem_max(const TandemCall* c) {
  if (++calls <= 8) slow(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, WorkingOnlySometimes_Fails) {
  EXPECT_LE(points_of(R"(
static int calls;
int tandem_max(const TandemCall* c) {
  if (++calls % 8 != 0) slow(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, SlowingTheBaseline_ByThreads_Fails) {
  EXPECT_LE(points_of(R"(
static void* spin(void* none) { for (;;) __asm__ volatile(""); return none; }
static int started;
int tandem_max(const TandemCall* c) {
  pthread_t thread;
  while (started < 16) started += pthread_create(&thread, 0, spin, 0) == 0 ? 1 : 16;
  slow(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, SlowingTheBaseline_ByPriorityAndAffinity_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  struct sched_param highest = {.sched_priority = 99};
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  if (setpriority(PRIO_PROCESS, 0, -20) == 0 || sched_setscheduler(0, SCHED_FIFO, &highest) == 0 ||
      sched_setaffinity(getppid(), sizeof one, &one) == 0)
    fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, ForgedReplies_Fail) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  for (int fd = 3; fd < 32; ++fd)
    if (is_pipe(fd)) (void)!write(fd, "\0\0\0\0\0\0\0\0", 8);
  slow(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, ForgedReply_BeforeTheWorkIsDone_Fails) {
  EXPECT_LE(points_of(R"(
static void* run(void* call) { slow(call); return 0; }
int tandem_max(const TandemCall* c) {
  pthread_t thread;
  pthread_create(&thread, 0, run, (void*)c);
  for (int fd = 3; fd < 32; ++fd)
    if (is_pipe(fd)) (void)!write(fd, "", 1);
  pthread_join(thread, 0);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, LowerPrecision_Fails) {
  const GradeProfile profile = one_part_profile("xxt", "\"128x300 f32\"", "128x300 f32");
  const std::string code = R"(
static float rounded(float x) {  // to the 10 bits of TF32 and half precision
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&x, &bits, 4);
  return x;
}
int tandem_xxt(const TandemCall* c) {
  const float* x = c->inputs[0].data;
  float* out = c->outputs[0].data;
  const int64_t n = c->inputs[0].rows, k = c->inputs[0].columns;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += rounded(x[i * k + p]) * rounded(x[j * k + p]);
      out[i * n + j] = sum;
    }
  return 0;
})";
  EXPECT_EQ(grade_text_file("xxt.c", prelude + code, profile).points(), 0);
}

TEST(GradeCheats, SinglePrecisionInsteadOfDouble_Fails) {
  const GradeProfile profile = one_part_profile("xxt", "\"64x100 f64\"", "64x100 f64");
  const std::string code = R"(
int tandem_xxt(const TandemCall* c) {
  const double* x = c->inputs[0].data;
  double* out = c->outputs[0].data;
  const int64_t n = c->inputs[0].rows, k = c->inputs[0].columns;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += (float)x[i * k + p] * (float)x[j * k + p];
      out[i * n + j] = sum;
    }
  return 0;
})";
  EXPECT_EQ(grade_text_file("xxt.c", prelude + code, profile).points(), 0);
}

TEST(GradeCheats, StaleMemory_Fails) {
  EXPECT_EQ(points_of("int tandem_max(const TandemCall* c) { return 0; }"), 0);
}

TEST(GradeCheats, FinishingInAThread_Fails) {
  EXPECT_LE(points_of(R"(
static void* run(void* call) {
  TandemCall other = *(TandemCall*)call;  // so that the result comes last, as after real work
  TandemArray scratch = other.outputs[0];
  scratch.data = malloc(count_of(&other) * 4);
  other.outputs = &scratch;
  slow(&other);
  fast(call);
  return 0;
}
int tandem_max(const TandemCall* c) {
  pthread_t thread;
  pthread_create(&thread, 0, run, (void*)c);
  pthread_detach(thread);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, ChangingTheInputs_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  for (int i = 0; i < 2; ++i) {
    mprotect((void*)((uintptr_t)c->inputs[i].data & ~4095ul), count_of(c) * 4 + 4096, PROT_READ | PROT_WRITE);
    memset(c->inputs[i].data, 0, count_of(c) * 4);
  }
  memset(c->outputs[0].data, 0, count_of(c) * 4);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, ChangingTheInputs_ByReopeningTheirMemory_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  for (int fd = 3; fd < 32; ++fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) continue;  // the outputs
    const int file = open(path, O_RDWR);
    const off_t size = file < 0 ? 0 : lseek(file, 0, SEEK_END);
    char* memory = size > 1 << 20 ? mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (memory != MAP_FAILED) memset(memory, 0, size);
  }
  memset(c->outputs[0].data, 0, count_of(c) * 4);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, NanResults_Fail) {
  const GradeProfile profile = one_part_profile("max", "\"100x100 f32\"", "100x100 f32");
  EXPECT_EQ(grade_text_file("max.c", prelude + R"(
int tandem_max(const TandemCall* c) {
  float* out = c->outputs[0].data;
  for (int64_t i = 0; i < count_of(c); ++i) out[i] = NAN;
  return 0;
})",
                            profile)
                .points(),
            0);
}

TEST(GradeCheats, CallingTheReferenceLibrary_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  const char* names[] = {"_ZN6tandem7maximumERKNS_6TensorES2_", "_ZN6tandem7maximumERKNS_6TensorES2_NS_7VersionE"};
  for (int i = 0; i < 2; ++i)
    if (dlsym(RTLD_DEFAULT, names[i])) fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, ExitWithStatusZero_Fails) {
  EXPECT_EQ(points_of("int tandem_max(const TandemCall* c) { exit(0); }"), 0);
  EXPECT_EQ(points_of("__attribute__((constructor)) static void leave(void) { _exit(0); }\n"
                      "int tandem_max(const TandemCall* c) { return 0; }"),
            0);
}

TEST(GradeCheats, KillingTheGrader_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  if (kill(getppid(), SIGKILL) == 0 || kill(0, SIGTERM) == 0 || kill(-1, SIGTERM) == 0) fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, ForkedHelper_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  if (fork() == 0) {
    setsid();
    slow(c);
    _exit(0);
  }
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, FilesBetweenProcesses_Fail) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  const char* paths[] = {"/tmp/answers", "/dev/shm/answers", "/var/tmp/answers", "answers"};
  for (int i = 0; i < 4; ++i)
    if (open(paths[i], O_RDWR | O_CREAT, 0600) >= 0) fast(c);
  if (open("/etc/passwd", O_RDONLY) >= 0) fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, AskingTheNetwork_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  struct sockaddr address = {.sa_family = AF_UNIX, .sa_data = "/run/x"};  // a local socket reaches nobody
  const int local = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(local, &address, sizeof address) == 0 || errno != EPERM) fast(c);
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_INET6, SOCK_DGRAM, 0) >= 0) fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, PreloadingALibrary_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  setenv("LD_PRELOAD", "./max.so", 1);
  char* words[] = {"tandem", "plugin-host", 0};
  if (fork() == 0) execv("/proc/self/exe", words);
  const int file = open("/etc/ld.so.preload", O_WRONLY | O_CREAT, 0644);
  if (file >= 0) fast(c);
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, RedirectingTheOutputs_Fails) {
  EXPECT_LE(points_of(R"(
int tandem_max(const TandemCall* c) {
  c->outputs[0].data = c->inputs[0].data;
  c->outputs[0].rows = 0;
  return 0;
})"),
            honest_points);
}

TEST(GradeCheats, DecliningTheCase_EarnsNothing) {
  EXPECT_EQ(points_of("int tandem_max(const TandemCall* c) { return 1; }"), 0);
}

TEST(GradeCheats, PatchedHost_InPython_Fails) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  EXPECT_LE(python_points_of(R"(
import sys
host = sys.modules["__main__"]
host.Host.answer = lambda self: None
def max(a, b, out): pass
)"),
            honest_points);
}

TEST(GradeCheats, PatchedNumpy_InPython_Fails) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  EXPECT_LE(python_points_of(R"(
import numpy as np
np.array_equal = np.allclose = lambda *a, **k: True
np.maximum = lambda a, b, out: None
def max(a, b, out): np.maximum(a, b, out)
)"),
            honest_points);
}

TEST(GradeCheats, PatchedClock_InPython_Fails) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  if (sanitized) GTEST_SKIP() << "the reference is slow, too";
  EXPECT_LE(python_points_of(R"(
import time
import numpy as np
time.perf_counter = time.monotonic = time.time = lambda: 0.0
def max(a, b, out):
    for _ in range(100): np.maximum(a, b, out=out)
)"),
            honest_points);
}

TEST(GradeCheats, ResultObjectThatLies_InPython_Fails) {
  if (!has_python()) GTEST_SKIP() << "there is no Python with NumPy here";
  EXPECT_LE(python_points_of(R"(
class Equal:
    def __eq__(self, other): return True
    def __array__(self, dtype=None, copy=None):
        import numpy as np
        return np.zeros((300, 1000), np.int32)
def max(a, b): return Equal()
)"),
            honest_points);
}

}  // namespace
}  // namespace tandem
