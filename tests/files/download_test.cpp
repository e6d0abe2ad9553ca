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
  void get(const std::string& page, std::uint64_t limit = 1 << 20) {
    download(server_.address(page), path_, {.limit = limit});
  }
  std::string error_of(const std::string& page, std::uint64_t limit = 1 << 20) {
    return error_text([&] { get(page, limit); });
  }

  const std::string body_ = long_text();
  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "f";
  HttpServer server_{{{"/f", {.body = body_}}, {"/moved", {.redirect = "/f"}}}};
};

TEST_F(Download, WritesTheWholeFileAndNoPart) {
  std::uint64_t done = 0, total = 0;
  download(
      server_.address("/moved"), path_,
      {.limit = body_.size(), .on_progress = [&](std::uint64_t d, std::uint64_t t) { done = d, total = t; }});
  EXPECT_EQ(get_bytes(path_), body_);
  EXPECT_EQ(folder_.count(), 1u);
  EXPECT_EQ(done, body_.size());
  EXPECT_EQ(total, body_.size());
}

TEST_F(Download, GoesOnWhereItStopped) {
  server_.set("/f", {.body = body_, .break_after = 1000});
  EXPECT_NE(error_of("/f").find("[download] " + server_.address("/f") + ": "), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(get_bytes(part_of(path_)), body_.substr(0, 1000));
  server_.set("/f", {.body = body_});
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
  EXPECT_EQ(server_.requests(), (Requests{"/f", "/f from 1000"}));
  EXPECT_EQ(folder_.count(), 1u);
}

TEST_F(Download, StartsAgainWhereAPartIsOfNoUse) {
  put_bytes(part_of(path_), body_.substr(0, 50));
  server_.set("/f", {.body = body_, .ranges = false});
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
  put_bytes(part_of(path_), body_ + "longer");
  server_.set("/f", {.body = body_});
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
  put_bytes(part_of(path_), std::string(2 << 20, 'x'));  // beyond the limit
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
}

TEST_F(Download, ErrorsLeaveNothingThatLooksWhole) {
  const std::string missing = error_of("/none");
  EXPECT_EQ(
      missing.rfind("[download] " + server_.address("/none") + ": The requested URL returned error: 404", 0),
      0u)
      << missing;
  EXPECT_EQ(error_of("/f", 5000),
            "[download] " + server_.address("/f") + ": more than the limit of 5000 bytes");
  EXPECT_EQ(folder_.count(), 0u);
  EXPECT_EQ(error_text([&] {
              download("file:///etc/passwd", path_, {.limit = 1 << 20});
            }).rfind("[download] file:///etc/passwd: ", 0),
            0u);
  EXPECT_EQ(
      error_text([&] { download(server_.address("/f"), folder_ / "no" / "f", {.limit = 1 << 20}); }),
      "[download] cannot write " + (folder_ / "no" / "f.part").string() + ": No such file or directory");
  EXPECT_EQ(folder_.count(), 0u);
}

TEST_F(Download, AFullDiskKeepsThePart) {
  std::string error;
  with_full_disk(4096, [&] { error = error_of("/f"); });
  EXPECT_EQ(error, "[download] cannot write " + part_of(path_).string() + ": File too large");
  EXPECT_EQ(get_bytes(part_of(path_)), body_.substr(0, 4096));
  get("/f");
  EXPECT_EQ(get_bytes(path_), body_);
}

}  // namespace
}  // namespace tandem
