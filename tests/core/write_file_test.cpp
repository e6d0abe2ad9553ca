#include "tandem/core/write_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tandem/core/error.h"

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

TEST_F(WriteFile, KeepsModesAndLinks) {
  const fs::path path = folder_ / "a";
  write_file("write", path, "x");
  fs::permissions(path, fs::perms(0640));
  fs::create_symlink("a", folder_ / "link");
  write_file("write", folder_ / "link", "y");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(path), "y");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
}

TEST_F(WriteFile, BytesAreKeptAsTheyAre) {
  const std::vector<std::byte> bytes{std::byte{0}, std::byte{0x0A}, std::byte{0x0D}, std::byte{0xFF}};
  write_file("write", folder_ / "a", bytes);
  EXPECT_EQ(read(folder_ / "a"), std::string("\0\n\r\xFF", 4));
}

TEST_F(WriteFile, ALinkToNothingYetMakesWhatItPointsTo) {
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

TEST_F(WriteFile, NewFilesAreReadableAsTheUmaskSays) {
  const mode_t mask = ::umask(022);
  write_file("write", folder_ / "a", "x");
  ::umask(mask);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms(0644));
}

TEST_F(WriteFile, NamesMayBeAsLongAsTheyCan) {
  write_file("write", folder_ / std::string(255, 'n'), "x");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, ErrorsNameThePathAndTheReason) {
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

TEST_F(WriteFile, CheckingLeavesNoTrace) {
  write_file("write", folder_ / "old", "x");
  check_writable("write", folder_ / "old");
  check_writable("write", folder_ / "new");
  check_writable("write", "/dev/null");
  EXPECT_EQ(read(folder_ / "old"), "x");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, RefusesWhatMayNotBeWritten) {
  const uid_t user = ::geteuid();
  constexpr uid_t nobody = 65534;
  if (user == 0) {  // root may write anything, so be nobody for a while
    ASSERT_EQ(::chown(folder_.c_str(), nobody, static_cast<gid_t>(-1)), 0);
    if (::seteuid(nobody) != 0) GTEST_SKIP() << "root may write anything and cannot become nobody here";
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

TEST_F(WriteFile, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const fs::path path = folder_ / "report.html";
  write_file("write", path, "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of(path, std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "[write] cannot write " + path.string() + ": File too large");
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, DevicesAreWrittenNotReplaced) {
  write_file("write", "/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(error_of("/dev/full"), "[write] cannot write /dev/full: No space left on device");
}

}  // namespace
}  // namespace tandem
