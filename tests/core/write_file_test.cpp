#include "tandem/core/write_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/streamed_file.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class WriteFile : public testing::Test {
 protected:
  WriteFile() {
    std::string name = (fs::temp_directory_path() / "tandem-write-XXXXXX").string();
    if (::mkdtemp(name.data())) folder_ = name;
  }
  ~WriteFile() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string error_of(const fs::path& path, std::string_view text = "text") {
    try {
      write_file("write", path, text);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string check_error_of(const fs::path& path) {
    try {
      check_writable("write", path);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  long files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  fs::path folder_;
};

TEST_F(WriteFile, WritesAndReplacesWholeFiles) {
  const fs::path path = folder_ / "report.html";
  write_file("write", path, "first, the longer one");
  EXPECT_EQ(read(path), "first, the longer one");
  write_file("write", path, "second");
  EXPECT_EQ(read(path), "second");
  write_file("write", path, "");
  EXPECT_EQ(read(path), "");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, ExistingFile_KeepsModeAndLinks) {
  const fs::path path = folder_ / "a";
  write_file("write", path, "x");
  fs::permissions(path, fs::perms(0640));
  fs::create_symlink("a", folder_ / "link");
  write_file("write", folder_ / "link", "y");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(path), "y");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
}

TEST_F(WriteFile, Bytes_AreWrittenUnchanged) {
  const std::vector<std::byte> bytes{std::byte{0}, std::byte{0x0A}, std::byte{0x0D}, std::byte{0xFF}};
  write_file("write", folder_ / "a", bytes);
  EXPECT_EQ(read(folder_ / "a"), std::string("\0\n\r\xFF", 4));
}

TEST_F(WriteFile, DanglingLink_CreatesItsTarget) {
  fs::create_directory(folder_ / "real");
  fs::create_symlink("second", folder_ / "first");
  fs::create_symlink(folder_ / "real" / "a", folder_ / "second");
  write_file("write", folder_ / "first", "x");
  EXPECT_TRUE(fs::is_symlink(folder_ / "first"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "second"));
  EXPECT_EQ(read(folder_ / "real" / "a"), "x");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(error_of(folder_ / "loop"),
            "[write] cannot write " + (folder_ / "loop").string() + ": Too many levels of symbolic links");
}

TEST_F(WriteFile, NewFile_ModeFollowsTheUmask) {
  const mode_t mask = ::umask(022);
  write_file("write", folder_ / "a", "x");
  ::umask(mask);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms(0644));
}

TEST_F(WriteFile, NameOfMaximumLength_IsWritten) {
  write_file("write", folder_ / std::string(255, 'n'), "x");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, Error_NamesThePathAndTheReason) {
  const fs::path missing = folder_ / "no" / "report.html";
  EXPECT_EQ(error_of(missing), "[write] cannot write " + missing.string() + ": No such file or directory");
  EXPECT_EQ(error_of(folder_), "[write] cannot write " + folder_.string() + ": Is a directory");
  write_file("write", folder_ / "file", "x");
  const fs::path below = folder_ / "file" / "report.html";
  EXPECT_EQ(error_of(below), "[write] cannot write " + below.string() + ": Not a directory");
  EXPECT_EQ(error_of(""), "[write] expected a file name to write to, got none");
  EXPECT_EQ(files(), 1);
  for (const fs::path& path : {missing, folder_, below, fs::path()})
    EXPECT_EQ(check_error_of(path), error_of(path));
}

TEST_F(WriteFile, CheckWritable_LeavesNoTrace) {
  write_file("write", folder_ / "old", "x");
  check_writable("write", folder_ / "old");
  check_writable("write", folder_ / "new");
  check_writable("write", "/dev/null");
  EXPECT_EQ(read(folder_ / "old"), "x");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, ReadOnlyTarget_Throws) {
  const uid_t user = ::geteuid();
  constexpr uid_t nobody = 65534;
  if (user == 0) {  // root can write anything, so become nobody temporarily
    ASSERT_EQ(::chown(folder_.c_str(), nobody, static_cast<gid_t>(-1)), 0);
    if (::seteuid(nobody) != 0) GTEST_SKIP() << "root can write anything and cannot become nobody here";
  }
  const fs::path path = folder_ / "report.html";
  write_file("write", path, "old");
  fs::permissions(path, fs::perms(0444));
  EXPECT_EQ(error_of(path), "[write] cannot write " + path.string() + ": Permission denied");
  EXPECT_EQ(read(path), "old");
  fs::permissions(folder_, fs::perms(0555));
  EXPECT_EQ(check_error_of(path), error_of(path));
  const fs::path fresh = folder_ / "new.html";
  EXPECT_EQ(error_of(fresh), "[write] cannot write " + fresh.string() + ": Permission denied");
  EXPECT_EQ(check_error_of(fresh), error_of(fresh));
  fs::permissions(folder_, fs::perms(0755));
  EXPECT_EQ(::seteuid(user), 0);
}

// Simulates a full disk: calls f with a limit on the size of files.
template <class F>
void with_file_size_limit(rlim_t bytes, F&& f) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = bytes;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  f();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
}

TEST_F(WriteFile, FailedWrite_LeavesOnlyTheOldFile) {
  const fs::path path = folder_ / "report.html";
  write_file("write", path, "old");
  std::string error;
  with_file_size_limit(1000, [&] { error = error_of(path, std::string(5000, 'x')); });
  EXPECT_EQ(error, "[write] cannot write " + path.string() + ": File too large");
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, Device_IsWrittenNotReplaced) {
  write_file("write", "/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(error_of("/dev/full"), "[write] cannot write /dev/full: No space left on device");
}

// Small files, and large ones that are written by background threads.
class WriteParts : public WriteFile, public testing::WithParamInterface<std::size_t> {
 protected:
  FileParts parts(std::string head) {
    return {.header_size = 4,
            .make_header = [head] { return head; },
            .body = {std::as_bytes(std::span(*body_)), {}, std::as_bytes(std::span(tail_))},
            .keep_alive = body_};
  }

  std::shared_ptr<const std::string> body_ = std::make_shared<const std::string>(GetParam(), 'b');
  std::string tail_ = "tail";
  fs::path path_ = folder_ / "a";
};

TEST_P(WriteParts, Finish_WritesOneFile) {
  write_file("write", path_, "old");
  PendingFile file("write", path_, parts("head"));
  EXPECT_EQ(read(path_), "old");
  PendingFile moved = std::move(file);
  moved.finish();
  EXPECT_EQ(read(path_), "head" + *body_ + "tail");
  EXPECT_EQ(parts("head").to_string(), read(path_));
  EXPECT_EQ(files(), 1);
}

TEST_P(WriteParts, Previous_IsTheFileThatWasReplaced) {
  const fs::path previous = folder_ / "b";
  for (const std::string head : {"one.", "two.", "then"})
    PendingFile("write", path_, parts(head)).finish(previous);
  EXPECT_EQ(read(path_).substr(0, 4), "then");
  EXPECT_EQ(read(previous).substr(0, 4), "two.");
  EXPECT_EQ(files(), 2);
  // A new file replaces nothing, so that the one of before stays.
  fs::remove(path_);
  PendingFile("write", path_, parts("last")).finish(previous);
  EXPECT_EQ(read(previous).substr(0, 4), "two.");
}

TEST_P(WriteParts, NotFinished_LeavesNothing) {
  write_file("write", path_, "old");
  {
    const PendingFile one("write", path_, parts("head")), other("write", path_, parts("head"));
    EXPECT_EQ(files(), 3);
  }
  EXPECT_EQ(read(path_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_P(WriteParts, ConcurrentWrites_LastFinishWins) {
  PendingFile one("write", path_, parts("one "));
  PendingFile two("write", path_, parts("two "));
  two.finish();
  EXPECT_EQ(read(path_).substr(0, 4), "two ");
  one.finish();
  EXPECT_EQ(read(path_).substr(0, 4), "one ");
}

TEST_P(WriteParts, Failure_LeavesOnlyTheOldFile) {
  write_file("write", path_, "old");
  const auto error_of_parts = [&](FileParts given) -> std::string {
    try {
      PendingFile("write", path_, std::move(given)).finish();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  std::string full;
  with_file_size_limit(GetParam() / 2, [&] { full = error_of_parts(parts("head")); });
  EXPECT_EQ(full, "[write] cannot write " + path_.string() + ": File too large");
  FileParts bad = parts("");
  bad.make_header = []() -> std::string { throw Error("no head"); };
  EXPECT_EQ(error_of_parts(bad), "no head");
  EXPECT_EQ(read(path_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_P(WriteParts, Pipe_ReceivesHeaderThenBody) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  std::future<std::string> got = std::async(std::launch::async, [&] { return read(path_); });
  PendingFile("write", path_, parts("head")).finish();
  EXPECT_EQ(got.get(), "head" + *body_ + "tail");
}

INSTANTIATE_TEST_SUITE_P(Sizes, WriteParts, testing::Values(100, 3 << 20));

TEST_F(WriteFile, AppendFile_AppendsAndReportsErrors) {
  const fs::path path = folder_ / "log.csv";
  append_file("write", path, "one\n");
  append_file("write", path, "");
  append_file("write", path, "two\n");
  EXPECT_EQ(read(path), "one\ntwo\n");
  const auto append_error = [](const fs::path& where) -> std::string {
    try {
      append_file("write", where, "text");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(append_error("/dev/full"), "[write] cannot write /dev/full: No space left on device");
  EXPECT_EQ(append_error(folder_), "[write] cannot write " + folder_.string() + ": Is a directory");
}

TEST_F(WriteFile, Streamed_AppearsWhenItIsFinished) {
  const fs::path path = folder_ / "big";
  StreamedFile file("write", path);
  file.append("0000");
  file.append("rest");
  file.replace_begin("head");
  file.append(" and end");
  EXPECT_FALSE(fs::exists(path));
  file.finish();
  EXPECT_EQ(read(path), "headrest and end");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(WriteFile, Streamed_Unfinished_LeavesTheOldFile) {
  const fs::path path = folder_ / "big";
  write_file("write", path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  { StreamedFile("write", path).append("new"); }
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  StreamedFile file("write", path);
  file.append("new");
  file.finish();
  EXPECT_EQ(read(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(WriteFile, Streamed_ToADeviceOrNowhere_Throws) {
  EXPECT_EQ(error_text([] { StreamedFile("write", "/dev/null"); }),
            "[write] /dev/null: expected a file to write, got a device or pipe");
  const fs::path nowhere = folder_ / "none" / "file";
  EXPECT_EQ(error_text([&] { StreamedFile("write", nowhere); }),
            "[write] cannot write " + nowhere.string() + ": No such file or directory");
}

}  // namespace
}  // namespace tandem
