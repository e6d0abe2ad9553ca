#include "tandem/files/download.h"

#include <gtest/gtest.h>

#include "tests/files/http_server.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

using Requests = std::vector<std::string>;

std::string long_text() {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += std::to_string(i);
  return text;
}

class Download : public testing::Test {
 protected:
  void get(const std::string& page, std::uint64_t max_bytes = 1 << 20) {
    download(server_.address(page), path_, {.max_bytes = max_bytes});
  }
  std::string error_of(const std::string& page, std::uint64_t max_bytes = 1 << 20) {
    return error_text([&] { get(page, max_bytes); });
  }

  const std::string body_ = long_text();
  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "f";
  HttpServer server_{{{"/f", {.body = body_}}, {"/moved", {.redirect = "/f"}}}};
};

TEST_F(Download, Success_LeavesOnlyTheFile) {
  std::uint64_t done = 0, total = 0;
  download(server_.address("/moved"), path_,
           {.max_bytes = body_.size(),
            .on_progress = [&](std::uint64_t d, std::uint64_t t) { done = d, total = t; }});
  EXPECT_EQ(get_bytes(path_), body_);
  EXPECT_EQ(folder_.count(), 1u);
  EXPECT_EQ(done, body_.size());
  EXPECT_EQ(total, body_.size());
}

TEST_F(Download, BrokenConnection_IsResumed) {
  server_.set("/f", {.body = body_, .break_after = 1000});
  EXPECT_NE(error_of("/f").find("[download] " + server_.address("/f") + ": "), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(get_bytes(partial_path(path_)), body_.substr(0, 1000));
  server_.set("/f", {.body = body_});
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
  EXPECT_EQ(server_.requests(), (Requests{"/f", "/f from 1000"}));
  EXPECT_EQ(folder_.count(), 1u);
}

TEST_F(Download, UselessPartialFile_StartsAgain) {
  put_bytes(partial_path(path_), body_.substr(0, 50));
  server_.set("/f", {.body = body_, .ranges = false});
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
  put_bytes(partial_path(path_), body_ + "longer");
  server_.set("/f", {.body = body_});
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
  put_bytes(partial_path(path_), std::string(2 << 20, 'x'));  // beyond the limit
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
}

TEST_F(Download, Errors_LeaveNoFile) {
  const std::string missing = error_of("/none");
  EXPECT_EQ(
      missing.rfind("[download] " + server_.address("/none") + ": The requested URL returned error: 404", 0),
      0u)
      << missing;
  EXPECT_EQ(error_of("/f", 5000),
            "[download] " + server_.address("/f") + ": the file is longer than 5000 bytes");
  EXPECT_EQ(folder_.count(), 0u);
  EXPECT_EQ(error_text([&] {
              download("file:///etc/passwd", path_, {.max_bytes = 1 << 20});
            }).rfind("[download] file:///etc/passwd: ", 0),
            0u);
  EXPECT_EQ(
      error_text([&] { download(server_.address("/f"), folder_ / "no" / "f", {.max_bytes = 1 << 20}); }),
      "[download] cannot write " + (folder_ / "no" / "f.part").string() + ": No such file or directory");
  EXPECT_EQ(folder_.count(), 0u);
}

TEST_F(Download, ServerThatDoesNotEnd_KeepsThePartialFile) {
  server_.set("/f", {.body = body_, .break_after = 1000, .stays_open = true});
  const std::string error =
      error_text([&] { download(server_.address("/f"), path_, {.max_bytes = 1 << 20, .timeout_s = 1}); });
  EXPECT_TRUE(error.starts_with("[download] " + server_.address("/f") + ": Operation timed out after "))
      << error;
  EXPECT_EQ(get_bytes(partial_path(path_)), body_.substr(0, 1000));
}

TEST_F(Download, FullDisk_KeepsThePartialFile) {
  std::string error;
  with_full_disk(4096, [&] { error = error_of("/f"); });
  EXPECT_EQ(error, "[download] cannot write " + partial_path(path_).string() + ": File too large");
  EXPECT_EQ(get_bytes(partial_path(path_)), body_.substr(0, 4096));
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
}

}  // namespace
}  // namespace tandem
