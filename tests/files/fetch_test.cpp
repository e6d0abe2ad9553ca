#include "tandem/files/fetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tandem/files/cache.h"
#include "tandem/files/sha256.h"
#include "tests/files/archives.h"
#include "tests/files/http_server.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const std::string images = "the images, all of them", labels = "the labels";

// A data set of two small files.
FetchSource small_source(const std::string& address = "") {
  return {.name = "small",
          .files = {{"a-images-idx3-ubyte", images.size(), sha256_hex(images)},
                    {"b-labels-idx1-ubyte", labels.size(), sha256_hex(labels)}},
          .address = address};
}

class FetchTest : public testing::Test {
 protected:
  FetchOptions options(const fs::path& from = {}) {
    return {.from = from, .cache = cache_.path(), .on_message = [this](const std::string& line) {
              messages_.push_back(line);
            }};
  }
  void expect_cached(const fs::path& folder) {
    EXPECT_EQ(folder, cache_ / "small");
    EXPECT_EQ(get_bytes(folder / "a-images-idx3-ubyte"), images);
    EXPECT_EQ(get_bytes(folder / "b-labels-idx1-ubyte"), labels);
  }
  std::string error_of(const fs::path& from) {
    return error_text([&] { fetch_dataset(small_source(), options(from)); });
  }

  TempFolder cache_, given_;
  std::vector<std::string> messages_;
};

TEST_F(FetchTest, FromFolder_RawOrCompressedAtAnyDepth) {
  fs::create_directories(given_ / "x" / "raw");
  put_bytes(given_ / "x" / "raw" / "a-images.idx3-ubyte", images);
  put_bytes(given_ / "b-labels-idx1-ubyte.gz", gzip(labels));
  put_bytes(given_ / "other", "noise");
  expect_cached(fetch_dataset(small_source(), options(given_.path())));
}

TEST_F(FetchTest, FromFolder_SeveralFilesOfOneName_UsesTheOneWithTheDigest) {
  fs::create_directory(given_ / "fashion");
  put_bytes(given_ / "fashion" / "a-images-idx3-ubyte", "other images");
  put_bytes(given_ / "z-none", "");
  fs::create_directory(given_ / "plain");
  put_bytes(given_ / "plain" / "a-images-idx3-ubyte", images);
  put_bytes(given_ / "plain" / "b-labels-idx1-ubyte", labels);
  expect_cached(fetch_dataset(small_source(), options(given_.path())));
}

TEST_F(FetchTest, FromArchive_CompressedOrNot) {
  const std::string archive = tar_entry("package/data/a-images-idx3-ubyte", images) +
                              tar_entry("package/data/b-labels-idx1-ubyte.gz", gzip(labels)) + tar_end();
  for (const std::string& bytes : {archive, gzip(archive)}) {
    fs::remove_all(cache_ / "small");
    put_bytes(given_ / "p.tgz", bytes);
    expect_cached(fetch_dataset(small_source(), options(given_ / "p.tgz")));
  }
}

TEST_F(FetchTest, FromSingleFiles_AnyName) {
  put_bytes(given_ / "1", gzip(images));
  put_bytes(given_ / "2", labels);
  EXPECT_EQ(error_of(given_ / "1"),
            "[fetch] " + (given_ / "1").string() + ": does not contain b-labels-idx1-ubyte");
  expect_cached(fetch_dataset(small_source(), options(given_ / "2")));
}

TEST_F(FetchTest, CompleteCache_UsesNoOtherOrigin) {
  put_bytes(given_ / "a-images-idx3-ubyte", images);
  put_bytes(given_ / "b-labels-idx1-ubyte", labels);
  fetch_dataset(small_source(), options(given_.path()));
  const TempFolder empty;
  expect_cached(fetch_dataset(small_source(), options(empty.path())));
  fs::remove(cache_ / "small" / ".verified");  // so that the files are hashed
  expect_cached(fetch_dataset(small_source(), options(empty.path())));
  EXPECT_EQ(error_of("/no/such/folder"), "[fetch] /no/such/folder: no such file or folder");
  EXPECT_TRUE(fs::exists(cache_ / "small" / ".verified"));
}

TEST_F(FetchTest, DamagedCache_IsReplaced) {
  put_bytes(given_ / "a-images-idx3-ubyte", images);
  put_bytes(given_ / "b-labels-idx1-ubyte", labels);
  const fs::path folder = fetch_dataset(small_source(), options(given_.path()));
  put_bytes(folder / "b-labels-idx1-ubyte", "THE LABELS");
  fs::last_write_time(folder / "b-labels-idx1-ubyte",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  messages_.clear();
  expect_cached(fetch_dataset(small_source(), options(given_.path())));
  EXPECT_EQ(messages_, (std::vector<std::string>{(folder / "b-labels-idx1-ubyte").string() +
                                                 " is damaged and will be replaced"}));
}

TEST_F(FetchTest, FromOtherFiles_Throws) {
  const std::string path = (given_ / "a-images-idx3-ubyte").string();
  put_bytes(path, "other images");
  EXPECT_EQ(error_of(given_.path()), "[fetch] " + path +
                                         ": expected the a-images-idx3-ubyte of small with SHA-256 " +
                                         sha256_hex(images) + ", got " + sha256_hex("other images") +
                                         ": the file has only 12 of 23 bytes");
  EXPECT_FALSE(fs::exists(cache_ / "small" / "a-images-idx3-ubyte"));
  EXPECT_EQ(error_of(path), error_of(given_.path()));  // it has the right name
  put_bytes(given_ / "x", "other images");
  EXPECT_EQ(error_of(given_ / "x"),
            "[fetch] " + (given_ / "x").string() +
                ": expected a folder, a .tar, .tgz or .deb with the files of small, or one of "
                "a-images-idx3-ubyte, b-labels-idx1-ubyte");
  put_bytes(path, gzip(std::string(100000, 'x')));
  EXPECT_EQ(error_of(given_.path()), "[gunzip] " + path + ": decompresses to more than 23 bytes");
  put_bytes(path, gzip(images).substr(0, 20));
  EXPECT_EQ(error_of(given_.path()), "[gunzip] " + path + ": the gzip data is truncated");
  fs::remove(path);
  EXPECT_EQ(error_of(given_.path()), "[fetch] " + given_.path().string() +
                                         ": does not contain a-images-idx3-ubyte, b-labels-idx1-ubyte");
  EXPECT_EQ(error_of(given_ / "none"), "[fetch] " + (given_ / "none").string() + ": no such file or folder");
}

TEST_F(FetchTest, FromAddress) {
  HttpServer server(
      {{"/a-images-idx3-ubyte.gz", {.body = gzip(images)}}, {"/b-labels-idx1-ubyte.gz", {.body = labels}}});
  expect_cached(fetch_dataset(small_source(server.address("/")), options()));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cache_ / "small")) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names,
            (std::vector<std::string>{".lock", ".verified", "a-images-idx3-ubyte", "b-labels-idx1-ubyte"}));
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(FetchTest, PartialFileOfAnotherFile_IsDownloadedAgain) {
  fs::create_directory(cache_ / "small");
  put_bytes(cache_ / "small" / "a-images-idx3-ubyte.download.part", "xxxxx");
  HttpServer server(
      {{"/a-images-idx3-ubyte.gz", {.body = gzip(images)}}, {"/b-labels-idx1-ubyte.gz", {.body = labels}}});
  expect_cached(fetch_dataset(small_source(server.address("/")), options()));
  EXPECT_EQ(server.requests()[0], "/a-images-idx3-ubyte.gz from 5");
  EXPECT_EQ(server.requests()[1], "/a-images-idx3-ubyte.gz");
}

TEST_F(FetchTest, AllOriginsFail_ErrorListsThem) {
  HttpServer server({{"/a-images-idx3-ubyte.gz", {.body = gzip("other")}}});
  const std::string text = error_text([&] { fetch_dataset(small_source(server.address("/")), options()); });
  EXPECT_EQ(text.rfind("[fetch] small is not in the cache " + (cache_ / "small").string() +
                           " and cannot be fetched ([fetch] ",
                       0),
            0u)
      << text;
  EXPECT_NE(text.find("a-images-idx3-ubyte.download: expected the a-images-idx3-ubyte of small"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("give the path of its files, or use the built-in data set digits"), std::string::npos);
  EXPECT_FALSE(fs::exists(cache_ / "small" / "a-images-idx3-ubyte.download"));
  FetchOptions offline = options();
  offline.offline = true;
  EXPECT_EQ(error_text([&] { fetch_dataset(small_source(server.address("/")), offline); }),
            "[fetch] small is not in the cache " + (cache_ / "small").string() +
                " and cannot be fetched (no other origin is allowed offline): give the path of its files, or "
                "use the built-in data set digits");
  EXPECT_EQ(server.requests().size(), 1u);
}

// Weights: one file in a shared folder, of unknown size.
FetchSource small_weights(const std::string& name, const std::string& bytes,
                          const std::string& address = "") {
  return {.name = name,
          .folder = "weights",
          .files = {{.name = name + ".pth", .sha256 = sha256_hex(bytes)}},
          .address = address,
          .address_suffix = "",
          .otherwise = "go without"};
}

TEST_F(FetchTest, Weights_AreVerifiedByTheirDigest) {
  HttpServer server({{"/one.pth", {.body = "weights one"}}});
  const FetchSource one = small_weights("one", "weights one", server.address("/"));
  const fs::path folder = fetch_dataset(one, options());
  EXPECT_EQ(folder, cache_ / "weights");
  EXPECT_EQ(get_bytes(folder / "one.pth"), "weights one");
  put_bytes(given_ / "two.pth", "weights two");
  fetch_dataset(small_weights("two", "weights two"), options(given_ / "two.pth"));
  messages_.clear();
  fetch_dataset(one, options());  // from the cache, whatever else is there
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_TRUE(messages_.empty());
  EXPECT_TRUE(fs::exists(folder / ".verified-one"));
  EXPECT_TRUE(fs::exists(folder / ".verified-two"));
}

TEST_F(FetchTest, FirstDigitsOfADigest_AreNotEnough) {
  put_bytes(given_ / "one.pth", "weights one");
  FetchSource one = small_weights("one", "weights one");
  one.files[0].sha256.resize(8);
  EXPECT_EQ(error_text([&] { fetch_dataset(one, options(given_.path())); }),
            "[fetch] " + (given_ / "one.pth").string() + ": expected the one.pth of one with SHA-256 " +
                sha256_hex("weights one").substr(0, 8) + ", got " + sha256_hex("weights one"));
}

TEST_F(FetchTest, WeightsWithAnotherDigest_Throw) {
  put_bytes(given_ / "one.pth", "something else");
  EXPECT_EQ(error_text([&] { fetch_dataset(small_weights("one", "weights one"), options(given_.path())); }),
            "[fetch] " + (given_ / "one.pth").string() + ": expected the one.pth of one with SHA-256 " +
                sha256_hex("weights one") + ", got " + sha256_hex("something else"));
  EXPECT_FALSE(fs::exists(cache_ / "weights" / "one.pth"));
  EXPECT_EQ(error_text([] { fetch_weights("mnist"); }),
            "[weights] expected one of resnet18, resnet34, resnet50, got 'mnist'");
  for (const FetchSource& source : weights_sources().rows()) {
    const FetchFile& file = source.files.front();
    EXPECT_EQ(file.sha256.size(), 64u) << "the whole digest";
    EXPECT_EQ(file.name, source.name + "-" + file.sha256.substr(0, 8) + ".pth");
    EXPECT_GT(file.size, 40u << 20);
  }
  EXPECT_TRUE(has_weights("resnet34"));
  EXPECT_FALSE(has_weights("cnn"));
}

TEST_F(FetchTest, Weights_AreResumed) {
  fs::create_directory(cache_ / "weights");
  put_bytes(cache_ / "weights" / "one.pth.download.part", "weigh");
  HttpServer server({{"/one.pth", {.body = "weights one"}}});
  fetch_dataset(small_weights("one", "weights one", server.address("/")), options());
  EXPECT_EQ(get_bytes(cache_ / "weights" / "one.pth"), "weights one");
  EXPECT_EQ(server.requests(), std::vector<std::string>{"/one.pth from 5"});
}

TEST_F(FetchTest, ConcurrentCalls_DownloadOnce) {
  HttpServer server(
      {{"/a-images-idx3-ubyte.gz", {.body = gzip(images)}}, {"/b-labels-idx1-ubyte.gz", {.body = labels}}});
  const FetchSource source = small_source(server.address("/"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { fetch_dataset(source, {.cache = cache_.path()}); });
  for (std::thread& thread : threads) thread.join();
  expect_cached(cache_ / "small");
  EXPECT_EQ(server.requests().size(), 2u);
}

// A source whose files are published in one archive.
FetchSource archived_source(const std::string& archive, const std::string& address = "") {
  return {.name = "packed",
          .files = {{"one.bin", 3, sha256_hex("111")}, {"two.bin", 4, sha256_hex("2222")}},
          .archive = {"packed.tar.gz", archive.size(), sha256_hex(archive)},
          .address = address,
          .address_suffix = ""};
}

TEST_F(FetchTest, Archive_IsVerifiedAsAWhole) {
  const std::string archive = gzip(tar_entry("x/one.bin", "111") + tar_entry("x/two.bin", "2222") +
                                   tar_entry("x/readme", "r") + tar_end());
  const FetchSource source = archived_source(archive);
  const std::string other = gzip(tar_entry("x/one.bin", "666") + tar_entry("x/two.bin", "7777") + tar_end());
  put_bytes(given_ / "other.tgz", other);
  EXPECT_EQ(error_text([&] { fetch_dataset(source, options(given_ / "other.tgz")); }),
            "[fetch] " + (given_ / "other.tgz").string() + ": expected packed.tar.gz with SHA-256 " +
                sha256_hex(archive) + ", got " + sha256_hex(other));
  EXPECT_FALSE(fs::exists(cache_ / "packed" / "one.bin"));
  fs::create_directory(given_ / "downloads");
  put_bytes(given_ / "downloads" / "packed.tar.gz", archive);
  const fs::path folder = fetch_dataset(source, options(given_ / "downloads"));
  EXPECT_EQ(get_bytes(folder / "one.bin") + get_bytes(folder / "two.bin"), "1112222");
  EXPECT_FALSE(fs::exists(folder / "readme"));
  fetch_dataset(source, options(TempFolder().path()));  // from the cache
  put_bytes(folder / "two.bin", "damaged");
  put_bytes(given_ / "packed", archive);  // any name
  fetch_dataset(source, options(given_ / "packed"));
  EXPECT_EQ(get_bytes(folder / "two.bin"), "2222");
}

TEST_F(FetchTest, Archive_IsDownloaded) {
  const std::string archive =
      gzip(tar_entry("x/one.bin", "111") + tar_entry("x/two.bin", "2222") + tar_end());
  HttpServer server({{"/packed.tar.gz", {.body = archive}}});
  const fs::path folder = fetch_dataset(archived_source(archive, server.address("/")), options());
  EXPECT_EQ(get_bytes(folder / "one.bin") + get_bytes(folder / "two.bin"), "1112222");
  EXPECT_FALSE(fs::exists(folder / "packed.tar.gz.download"));
  EXPECT_EQ(server.requests(), std::vector<std::string>{"/packed.tar.gz"});
}

TEST_F(FetchTest, LooseFilesOfAnArchive_AreVerified) {
  const FetchSource source = archived_source("anything");
  put_bytes(given_ / "one.bin", "111");
  put_bytes(given_ / "two.bin", "2223");  // the size is right
  EXPECT_EQ(error_text([&] { fetch_dataset(source, options(given_.path())); }),
            "[fetch] " + (given_ / "two.bin").string() + ": expected the two.bin of packed with SHA-256 " +
                sha256_hex("2222") + ", got " + sha256_hex("2223"));
  EXPECT_FALSE(fs::exists(cache_ / "packed" / "two.bin"));
  put_bytes(given_ / "two.bin", "2222");
  const fs::path folder = fetch_dataset(source, options(given_.path()));
  EXPECT_EQ(get_bytes(folder / "two.bin"), "2222");
}

TEST_F(FetchTest, InvalidNamesAndFolders_Throw) {
  put_bytes(cache_ / "small", "a file");
  EXPECT_EQ(error_of(given_.path()),
            "[fetch] cannot create the folder " + (cache_ / "small").string() + ": Not a directory");
}

}  // namespace
}  // namespace tandem
