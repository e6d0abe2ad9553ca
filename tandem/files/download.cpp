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

// What the callbacks of one transfer share.
struct Transfer {
  int file = -1;
  std::uint64_t had = 0;      // bytes of the part before the transfer
  std::uint64_t written = 0;  // bytes of the part now
  bool over_limit = false;
  int write_error = 0;
  const DownloadOptions* options = nullptr;

  ~Transfer() {
    if (file >= 0) ::close(file);
  }
};

// Returning less than it was given ends the transfer.
std::size_t on_data(const char* bytes, std::size_t one, std::size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  size *= one;
  transfer.over_limit = size > transfer.options->limit - transfer.written;
  if (transfer.over_limit) return 0;
  std::size_t done = 0;
  while (done < size) {
    const ssize_t put = ::write(transfer.file, bytes + done, size - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      transfer.write_error = errno;
      return 0;
    }
    done += static_cast<std::size_t>(put);
    transfer.written += static_cast<std::uint64_t>(put);
  }
  return size;
}

int on_progress(void* context, curl_off_t total, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<const Transfer*>(context);
  if (transfer.options->on_progress)
    transfer.options->on_progress(transfer.written,
                                  total > 0 ? static_cast<std::uint64_t>(total) + transfer.had : 0);
  return 0;
}

struct Outcome {
  CURLcode code = CURLE_OK;
  long status = 0;
  std::string text;
};

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

Handle new_handle() {
  static std::once_flag once;  // the library must be set up before any thread uses it
  std::call_once(once, [] { expect(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
  Handle handle(curl_easy_init(), curl_easy_cleanup);
  expect(handle != nullptr);
  return handle;
}

Outcome transfer_once(const std::string& address, Transfer& transfer) {
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
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, long{options.connect_limit_s});
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 100L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, long{options.stall_limit_s});
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.had));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
  Outcome outcome;
  outcome.code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &outcome.status);
  outcome.text = text[0] != '\0' ? text : curl_easy_strerror(outcome.code);
  return outcome;
}

}  // namespace

fs::path part_of(const fs::path& path) {
  fs::path part = path;
  part += ".part";
  return part;
}

void download(const std::string& address, const fs::path& path, const DownloadOptions& options) {
  const fs::path part = part_of(path);
  const auto need = [&](bool fine) {
    const int code = errno;
    check(fine, "[download] cannot write {}: {}", part.string(), std::generic_category().message(code));
  };
  Transfer transfer;
  transfer.options = &options;
  transfer.file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  need(transfer.file >= 0);
  struct stat facts {};
  need(::fstat(transfer.file, &facts) == 0);
  transfer.had = transfer.written = static_cast<std::uint64_t>(facts.st_size);

  const auto start_again = [&] {
    need(::ftruncate(transfer.file, 0) == 0);
    transfer.had = transfer.written = 0;
  };
  if (transfer.had > options.limit) start_again();
  Outcome outcome = transfer_once(address, transfer);
  // A server that knows no ranges, or a part that is longer than the file.
  constexpr long range_not_satisfiable = 416;
  if (transfer.had > 0 && (outcome.code == CURLE_RANGE_ERROR || outcome.status == range_not_satisfiable)) {
    start_again();
    outcome = transfer_once(address, transfer);
  }
  errno = transfer.write_error;
  need(transfer.write_error == 0);
  if (transfer.over_limit) start_again();
  if (transfer.written == 0 && outcome.code != CURLE_OK) ::unlink(part.c_str());  // nothing to go on with
  check(!transfer.over_limit, "[download] {}: more than the limit of {} bytes", address, options.limit);
  check(outcome.code == CURLE_OK, "[download] {}: {}", address, outcome.text);
  need(::fsync(transfer.file) == 0);
  need(::rename(part.c_str(), path.c_str()) == 0);
}

}  // namespace tandem
