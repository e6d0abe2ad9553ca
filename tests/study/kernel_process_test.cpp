// Plugins in their own process: a correct one, and one for every way to misbehave.
#include "tandem/study/plugin/kernel_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "tandem/files/scratch_folder.h"
#include "tandem/process/descriptor.h"
#include "tests/core/error_text.h"
#include "tests/process/orphans.h"
#include "tests/study/plugin_trial.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Every function doubles four numbers of type i32, or does something else.
constexpr const char* functions = R"(
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <tandem/plugin.h>

int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }

static int twice(const TandemCall* call) {
  const int32_t* in = call->inputs[0].data;
  int32_t* out = call->outputs[0].data;
  const int64_t count = call->inputs[0].rows * call->inputs[0].columns * call->inputs[0].channels;
  for (int64_t i = 0; i < count; ++i) out[i] = 2 * in[i];
  return 0;
}

int tandem_twice(const TandemCall* call) { return twice(call); }
int tandem_threads(const TandemCall* call) { *(int32_t*)call->outputs[0].data = call->threads; return 0; }
int tandem_nothing(const TandemCall* call) { (void)call; return 0; }
int tandem_refuse(const TandemCall* call) { (void)call; return 7; }
int tandem_crash(const TandemCall* call) { (void)call; *(volatile int*)8 = 1; return 0; }
int tandem_hang(const TandemCall* call) { (void)call; for (volatile int i = 0;; ++i) {} }
int tandem_exit(const TandemCall* call) { (void)call; exit(0); }
int tandem_say(const TandemCall* call) { (void)call; fprintf(stderr, "first\nno such shape\n\n"); exit(3); }
int tandem_behind(const TandemCall* call) { ((int32_t*)call->outputs[0].data)[4] = 1; return twice(call); }
int tandem_before(const TandemCall* call) { ((int32_t*)call->outputs[0].data)[-1] = 1; return twice(call); }
int tandem_far(const TandemCall* call) { ((char*)call->outputs[0].data)[1 << 30] = 1; return twice(call); }
int tandem_input(const TandemCall* call) { *(int32_t*)call->inputs[0].data = 99; return twice(call); }
int tandem_unprotect(const TandemCall* call) {
  char* page = (char*)((uintptr_t)call->inputs[0].data & ~4095ul);
  if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) return 9;
  *(int32_t*)call->inputs[0].data = 1;
  return twice(call);
}
int tandem_close(const TandemCall* call) { for (int fd = 0; fd < 64; ++fd) close(fd); return twice(call); }
int tandem_flood(const TandemCall* call) {
  static char text[1 << 16];
  memset(text, 'x', sizeof text);
  for (int i = 0; i < 64; ++i) { fwrite(text, 1, sizeof text, stderr); fwrite(text, 1, sizeof text, stdout); }
  return twice(call);
}
int tandem_kill_parent(const TandemCall* call) {
  if (kill(getppid(), SIGKILL) == 0) return 1;
  if (syscall(SYS_tgkill, getppid(), getppid(), SIGKILL) == 0) return 2;
  return twice(call);
}
int tandem_read_parent(const TandemCall* call) {
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {(void*)call, 1};
  if (process_vm_readv(getppid(), &here, 1, &there, 1, 0) >= 0 || errno != EPERM) return 1;
  return twice(call);
}
int tandem_network(const TandemCall* call) {
  const int local = socket(AF_UNIX, SOCK_STREAM, 0);  // CUDA needs one
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/docker.sock"};
  if (local < 0 || connect(local, (struct sockaddr*)&address, sizeof address) == 0 || errno != EPERM) return 1;
  return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_INET6, SOCK_DGRAM, 0) >= 0 ? 2 : twice(call);
}
int tandem_leave_group(const TandemCall* call) { return setsid() >= 0 || setpgid(0, 0) == 0 ? 1 : twice(call); }
int tandem_forget(const TandemCall* call) {  // leaves a process behind, and says which
  const pid_t child = fork();
  if (child == 0) for (;;) pause();
  *(int32_t*)call->outputs[0].data = child;
  return 0;
}
int tandem_forget_and_exit(const TandemCall* call) {
  (void)call;
  if (fork() == 0) for (;;) pause();
  exit(3);
}
int tandem_fork(const TandemCall* call) { return fork() >= 0 ? 1 : twice(call); }
static void* late(void* call) { sleep(60); twice(call); return 0; }  // the process ends before
int tandem_late(const TandemCall* call) {
  static TandemCall copy;
  static pthread_t thread;
  copy = *call;
  return pthread_create(&thread, 0, late, &copy);
}
int tandem_descriptors(const TandemCall* call) {  // page, inputs, outputs, requests, replies
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  *(int32_t*)call->outputs[0].data = count;
  return 0;
}
int tandem_shrink(const TandemCall* call) {  // would end the other side at its next access
  for (int fd = 3; fd < 64; ++fd) if (ftruncate(fd, 0) == 0) return 1;
  return twice(call);
}
static void forge_replies(size_t count) {  // the descriptor of the replies is the only one that is for writing alone
  for (int fd = 3; fd < 64; ++fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_WRONLY) write(fd, "\0", count);
  }
}
int tandem_forge(const TandemCall* call) { (void)call; forge_replies(1); for (;;) pause(); }
int tandem_forge_more(const TandemCall* call) { (void)call; forge_replies(2); for (;;) pause(); }
)";

const PluginFile& plugin() {
  static const PluginFile compiled = compile(functions, "functions.c");
  return compiled;
}

// Of the functions above.
class Trial : public PluginTrial {
 public:
  explicit Trial(const std::string& function, const KernelProcessOptions& given = plugin_options,
                 const PluginFile& file = plugin())
      : PluginTrial(file, function, given) {}
};

std::string failure_of(const std::string& function, const KernelProcessOptions& given = plugin_options) {
  return error_text([&] { Trial(function, given).result(); });
}

TEST(KernelProcess, Function_GetsInputsAndFillsOutputs) {
  Trial run("twice");
  EXPECT_EQ(run.result(), doubled);
  EXPECT_FALSE(run.process().is_cuda());
  EXPECT_EQ(run.result(), doubled);  // and again
}

TEST(KernelProcess, Threads_ArePassed) {
  EXPECT_EQ(Trial("threads").result(5)[0], 5);
}

TEST(KernelProcess, Sets_AreSeparate) {
  KernelFormat format = four_numbers("twice");
  format.sets = 3;
  KernelProcess process(plugin(), format, plugin_options);
  for (int set = 0; set < 3; ++set) {
    const Numbers values(4, set + 10);
    process.set_input(set, 0, std::as_bytes(std::span(values)));
    process.poison_outputs(set);
  }
  const int sets[] = {2, 0};
  process.run(sets, 1);
  EXPECT_EQ(to_numbers(process.output(0, 0)), Numbers(4, 20));
  EXPECT_EQ(to_numbers(process.output(2, 0)), Numbers(4, 24));
  EXPECT_NE(to_numbers(process.output(1, 0)), Numbers(4, 22)) << "set 1 was not asked for";
  EXPECT_EQ(error_text([&] {
              const int unknown[] = {3};
              process.run(unknown, 1);
            }),
            "[plugin] expected a set below 3, got 3");
}

TEST(KernelProcess, HugePages_HaveTheSameArraysAndGuards) {
  Trial run("twice", with_huge_pages());
  EXPECT_EQ(run.result(), doubled);
  EXPECT_EQ(run.result(), doubled);
  EXPECT_EQ(failure_of("behind", with_huge_pages()), "wrote outside of its outputs");
  EXPECT_EQ(failure_of("before", with_huge_pages()), "wrote outside of its outputs");
  EXPECT_EQ(failure_of("input", with_huge_pages()), "changed its inputs");
  EXPECT_EQ(failure_of("crash", with_huge_pages()), "was ended by signal 11");
  EXPECT_NE(Trial("late", with_huge_pages()).result(), doubled);
}

TEST(KernelProcess, UntouchedOutput_IsPoison) {
  const ArrayFormat array{.dtype = DType::f64, .rows = 1, .columns = 3};
  KernelProcess process(plugin(), {.function = "nothing", .inputs = {}, .outputs = {array}}, plugin_options);
  process.poison_outputs(0);
  const int sets[] = {0};
  process.run(sets, 1);
  const std::vector<std::byte> bytes = process.output(0, 0);
  for (int i = 0; i < 3; ++i) {
    double value = 0;
    std::memcpy(&value, bytes.data() + static_cast<std::ptrdiff_t>(8) * i, 8);
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(KernelProcess, Refusal_IsUnsupportedCase) {
  EXPECT_THROW(Trial("refuse").result(), UnsupportedCase);
  EXPECT_EQ(failure_of("refuse"), "returned 7: it does not support this case");
}

TEST(KernelProcess, MissingFunction_IsUnsupportedCase) {
  EXPECT_THROW(Trial("absent"), UnsupportedCase);
  EXPECT_EQ(failure_of("absent"), "has no function tandem_absent");
}

TEST(KernelProcess, Crash_IsNamed) {
  EXPECT_EQ(failure_of("crash"), "was ended by signal 11");
  EXPECT_EQ(failure_of("far"), "was ended by signal 11");
}

TEST(KernelProcess, Hang_EndsAtTheTimeout) {
  KernelProcessOptions soon = plugin_options;
  soon.timeout_s = 0.2;
  EXPECT_EQ(failure_of("hang", soon), "took longer than 0.2 s");
}

TEST(KernelProcess, Exit_IsNamedWithTheLastLine) {
  EXPECT_EQ(failure_of("exit"), "ended with status 0");
  EXPECT_EQ(failure_of("say"), "ended with status 3: no such shape");
}

TEST(KernelProcess, WriteOutsideOfOutputs_IsNoticed) {
  EXPECT_EQ(failure_of("behind"), "wrote outside of its outputs");
  EXPECT_EQ(failure_of("before"), "wrote outside of its outputs");
}

TEST(KernelProcess, WriteToInputs_EndsThePlugin) {
  EXPECT_EQ(failure_of("input"), "was ended by signal 11");
  EXPECT_EQ(failure_of("unprotect"), "returned 9: it does not support this case");
}

TEST(KernelProcess, ClosedDescriptors_EndThePlugin) {
  EXPECT_EQ(failure_of("close"), "ended with status 0");  // the end of the requests
}

TEST(KernelProcess, Flood_IsRead) {
  EXPECT_EQ(Trial("flood").result(), doubled);
}

TEST(KernelProcess, OtherProcesses_AreOutOfReach) {
  for (const char* function : {"kill_parent", "read_parent", "network", "leave_group", "shrink"})
    EXPECT_EQ(Trial(function).result(), doubled) << function;
}

TEST(KernelProcess, OnlyItsOwnDescriptors_AreInherited) {
  const ScratchFolder folder;
  const int leaked = ::open((folder.path() / "open").c_str(), O_CREAT | O_RDWR, 0600);  // without O_CLOEXEC
  const int high = ::fcntl(leaked, F_DUPFD, 100);
  const int count = Trial("descriptors").result()[0];
  ::close(leaked);
  ::close(high);
  EXPECT_EQ(count, 5);
}

TEST(KernelProcess, ForkedProcess_IsKilledWithIt) {
  Descriptor child;
  {
    Trial run("forget");
    const pid_t pid = run.result()[0];
    ASSERT_GT(pid, 0);
    child = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    ASSERT_TRUE(child);
  }
  pollfd end{.fd = child.get(), .events = POLLIN, .revents = 0};  // readable when the process has ended
  EXPECT_EQ(::poll(&end, 1, 20000), 1);
}

TEST(KernelProcess, ProcessThatExits_LeavesNothingBehind) {
  const Orphans orphans;
  EXPECT_EQ(failure_of("forget_and_exit"), "ended with status 3");
  EXPECT_EQ(orphans.count(), 0);
}

TEST(KernelProcess, Fork_FailsWhereItIsNotAllowed) {
  KernelProcessOptions strict = plugin_options;
  strict.sandbox.allow_processes = false;
  EXPECT_EQ(Trial("fork", strict).result(), doubled);
  EXPECT_EQ(Trial("kill_parent", strict).result(), doubled);
}

TEST(KernelProcess, LateResult_IsNotThere) {
  EXPECT_NE(Trial("late").result(), doubled);
}

TEST(KernelProcess, ForgedReply_HasNoResult) {
  KernelProcessOptions soon = plugin_options;
  soon.timeout_s = 0.2;
  Trial run("forge", soon);
  EXPECT_NE(run.result(), doubled);
  EXPECT_EQ(error_text([&] { run.result(); }), "took longer than 0.2 s");
}

TEST(KernelProcess, ForgedReplies_AreNoticed) {
  Trial run("forge_more");
  EXPECT_NE(run.result(), doubled);
  EXPECT_EQ(error_text([&] { run.result(); }), "answered without having been asked");
}

TEST(KernelProcess, NoFiles_HidesFiles) {
  const PluginFile file = compile(R"(
#include <stdio.h>
#include <tandem/plugin.h>
int tandem_plugin_version(void) { return 1; }
int tandem_open(const TandemCall* call) {
  int32_t* out = call->outputs[0].data;
  const char* const paths[] = {"/etc/passwd", "/proc/self/status", "/tmp", "/usr/lib/os-release"};
  for (int i = 0; i < 4; ++i) { FILE* file = fopen(paths[i], "r"); out[i] = file != 0; if (file) fclose(file); }
  return 0;
}
)",
                                  "open.c");
  fs::permissions(file.folder->path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  KernelProcessOptions strict = plugin_options;
  strict.sandbox = {.allow_files = false, .readable = system_paths(), .memory_bytes = std::int64_t{4} << 30};
  if (!missing_protections(strict.sandbox).empty() && ::geteuid() == 0)
    GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(Trial("open", strict, file).result(), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(Trial("open", plugin_options, file).result(), (Numbers{1, 1, 1, 1}));
}

// The program has Tandem's versions and exports them, for plugins with models.
TEST(KernelProcess, CallOfTandem_IsRefused) {
  const PluginFile borrowed = compile(
      "#include <tandem/plugin.h>\n"
      "namespace tandem { int usable_cpus(); }\n"
      "extern \"C\" int tandem_plugin_version(void) { return TANDEM_PLUGIN_VERSION; }\n"
      "extern \"C\" int tandem_twice(const TandemCall*) { return tandem::usable_cpus() < 0; }\n",
      "borrowed.cpp");
  EXPECT_EQ(error_text([&] { Trial("twice", plugin_options, borrowed); }),
            "uses functions of Tandem; a kernel may not");
}

TEST(KernelProcess, OtherVersion_IsRefused) {
  const PluginFile old = compile("int tandem_plugin_version(void) { return 99; }", "old.c");
  EXPECT_EQ(error_text([&] { Trial("twice", plugin_options, old); }),
            "was made for version 99 of the plugin interface, this is version 1");
  const PluginFile none = compile("int x;", "none.c");
  EXPECT_EQ(error_text([&] { Trial("twice", plugin_options, none); }),
            "has no function tandem_plugin_version");
}

TEST(KernelProcess, HugeArrays_AreRefusedBeforeAllocation) {
  const ArrayFormat array{.dtype = DType::f64, .rows = 1 << 24, .columns = 1 << 20};
  const std::string text = error_text([&] {
    KernelProcess(plugin(), {.function = "twice", .inputs = {array}, .outputs = {array}}, plugin_options);
  });
  EXPECT_TRUE(text.starts_with("[shared memory] the inputs of a plugin needs")) << text;
}

}  // namespace
}  // namespace tandem
