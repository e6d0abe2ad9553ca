// Downloads data sets and pretrained weights into the cache. A file is accepted only by its SHA-256 or that
// of its archive, whatever its origin, and appears in the cache complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tandem/core/registry.h"

namespace tandem {

/// One file of a data set, decompressed.
struct FetchFile {
  std::string name;        ///< "train-images-idx3-ubyte"
  std::uint64_t size = 0;  ///< 0: unknown, at most 512 MiB
  std::string sha256;      ///< all 64 digits
};

/// A data set or file of weights and its origins. Empty origins are not tried.
struct FetchSource {
  std::string name;    ///< "mnist"
  std::string folder;  ///< in the cache, possibly shared with others; `name` if empty
  std::vector<FetchFile> files;
  FetchFile archive = {};              ///< the .tar or .tgz that is published instead of single files
  std::string address;                 ///< URL prefix: files are at ADDRESS + NAME + SUFFIX
  std::string address_suffix = ".gz";  ///< files may be compressed or not, whatever the suffix
  std::string npm_package;             ///< for `npm pack`
  std::string debian_package;          ///< for `apt-get download`
  std::string debian_folder;           ///< where the installed package has its files
  std::string otherwise = "use the built-in data set digits";  ///< advice in the Error if all origins fail
};

struct FetchOptions {
  std::filesystem::path from;   ///< local folder, archive or file, tried before the network
  std::filesystem::path cache;  ///< cache_directory() if empty
  bool offline = false;         ///< use only the cache, `from` and installed packages
  std::function<void(const std::string& line)> on_message;
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> on_progress;
};

/// Returns the folder that contains all files of the data set. Files missing in the cache are taken from
/// options.from, the installed Debian package, the address, npm or the Debian archive, in this order.
/// options.from is a folder with the files, raw or gzip-compressed, a .tar, .tgz or .deb of them, or one of
/// the files. Throws an Error that lists what was tried if files are missing in options.from or in all other
/// origins. Safe to call from several threads and processes at once.
std::filesystem::path fetch_dataset(const FetchSource& source, const FetchOptions& options = {});

/// Published weights of models, by the model's name.
const Registry<FetchSource>& weights_sources();

/// Whether pretrained weights of that model are published.
bool has_weights(const std::string& model);
/// Returns the file of a model's pretrained weights, fetched in the same way. Throws Error unless
/// has_weights().
std::filesystem::path fetch_weights(const std::string& name, const FetchOptions& options = {});

}  // namespace tandem
