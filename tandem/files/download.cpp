#include "tandem/files/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>

#include "tandem/core/check.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Shared by the callbacks of one transfer.
struct Transfer {
  int file = -1;
  std::uint64_t resumed_at = 0;  // size of the partial file before the transfer
  std::uint64_t written = 0;     // size of the partial file now
  bool too_long = false;
  int write_error = 0;
  const DownloadOptions* options = nullptr;

  ~Transfer() {
    if (file >= 0) ::close(file);
  }
};

// Returning less than the given size aborts the transfer.
std::size_t on_data(const char* bytes, std::size_t element_size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::size_t size = element_size * count;
  transfer.too_long = size > transfer.options->max_bytes - transfer.written;
  if (transfer.too_long) return 0;
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::write(transfer.file, bytes + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      transfer.write_error = errno;
      return 0;
    }
    done += static_cast<std::size_t>(got);
    transfer.written += static_cast<std::uint64_t>(got);
  }
  return size;
}

int on_progress(void* context, curl_off_t total, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<const Transfer*>(context);
  if (transfer.options->on_progress)
    transfer.options->on_progress(transfer.written,
                                  total > 0 ? static_cast<std::uint64_t>(total) + transfer.resumed_at : 0);
  return 0;
}

struct Result {
  CURLcode code = CURLE_OK;
  long status = 0;
  std::string text;
};

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

Handle new_handle() {
  static std::once_flag once;  // libcurl must be initialized before any thread uses it
  std::call_once(once, [] { expect(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
  Handle handle(curl_easy_init(), curl_easy_cleanup);
  expect(handle != nullptr);
  return handle;
}

Result transfer_once(const std::string& address, Transfer& transfer) {
  const Handle handle = new_handle();
  CURL* const curl = handle.get();
  char text[CURL_ERROR_SIZE] = "";
  const DownloadOptions& options = *transfer.options;
  curl_easy_setopt(curl, CURLOPT_URL, address.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 8L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tandem");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, long{options.connect_timeout_s});
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 100L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, long{options.stall_timeout_s});
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.resumed_at));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
  Result result;
  result.code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &result.status);
  result.text = text[0] != '\0' ? text : curl_easy_strerror(result.code);
  return result;
}

}  // namespace

fs::path partial_path(const fs::path& path) {
  fs::path partial = path;
  partial += ".part";
  return partial;
}

void download(const std::string& address, const fs::path& path, const DownloadOptions& options) {
  const fs::path partial = partial_path(path);
  const auto require = [&](bool ok) {
    const int code = errno;
    check(ok, "[download] cannot write {}: {}", partial.string(), std::generic_category().message(code));
  };
  Transfer transfer;
  transfer.options = &options;
  transfer.file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  require(transfer.file >= 0);
  struct stat facts {};
  require(::fstat(transfer.file, &facts) == 0);
  transfer.resumed_at = transfer.written = static_cast<std::uint64_t>(facts.st_size);

  const auto restart = [&] {
    require(::ftruncate(transfer.file, 0) == 0);
    transfer.resumed_at = transfer.written = 0;
  };
  if (transfer.resumed_at > options.max_bytes) restart();
  Result result = transfer_once(address, transfer);
  // The server does not support ranges, or the partial file is longer than the file.
  constexpr long range_not_satisfiable = 416;
  if (transfer.resumed_at > 0 &&
      (result.code == CURLE_RANGE_ERROR || result.status == range_not_satisfiable)) {
    restart();
    result = transfer_once(address, transfer);
  }
  errno = transfer.write_error;
  require(transfer.write_error == 0);
  if (transfer.too_long) restart();
  if (transfer.written == 0 && result.code != CURLE_OK) ::unlink(partial.c_str());  // nothing to resume
  check(!transfer.too_long, "[download] {}: the file is longer than {} bytes", address, options.max_bytes);
  check(result.code == CURLE_OK, "[download] {}: {}", address, result.text);
  require(::fsync(transfer.file) == 0);
  require(::rename(partial.c_str(), path.c_str()) == 0);
}

}  // namespace tandem
