// A plugin that connects nobody. TANDEM_FAKE_MPI says what it does: "version" (it is of another one), "alone"
// (it says that this is the only rank, as an MPI does under the launcher of another one), "error" (it cannot
// connect), "hang" (a rank does not come).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tandem/dist/transport_abi.h"

namespace {

bool is_told(const char* what) {
  const char* told = std::getenv("TANDEM_FAKE_MPI");
  return told != nullptr && std::strcmp(told, what) == 0;
}

}  // namespace

extern "C" {

std::int32_t tandem_transport_version() {
  return TANDEM_TRANSPORT_VERSION + (is_told("version") ? 1 : 0);
}

std::int32_t tandem_transport_open(TandemTransport* table) {
  *table = TandemTransport{};
  table->version = TANDEM_TRANSPORT_VERSION;
  table->size = 1;
  table->error = [](void*) { return "MPI_Init_thread failed: no network"; };
  table->close = [](void*, std::int32_t) {};
  const timespec second{1, 0};
  while (is_told("hang")) nanosleep(&second, nullptr);
  return is_told("error") ? 1 : 0;
}
}
