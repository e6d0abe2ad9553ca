// A library with the functions of NVML that Tandem calls, declared as in nvml.h of CUDA 12. It knows one GPU;
// TANDEM_FAKE_NVML says what it does: "fails" (to start), "no-rates" (does not know how busy the GPU is). It
// counts in TANDEM_FAKE_NVML_OPEN how often it was started and not ended.
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" {
typedef struct nvmlDevice_st* nvmlDevice_t;
typedef enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;
typedef struct nvmlUtilization_st {
  unsigned int gpu;
  unsigned int memory;
} nvmlUtilization_t;
typedef struct nvmlMemory_st {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
} nvmlMemory_t;

static int open_count = 0;

static void count(int by) {
  open_count += by;
  setenv("TANDEM_FAKE_NVML_OPEN", std::to_string(open_count).c_str(), 1);
}

static bool is_told(const char* what) {
  const char* const told = std::getenv("TANDEM_FAKE_NVML");
  return told != nullptr && std::strcmp(told, what) == 0;
}

nvmlReturn_t nvmlInit_v2(void) {
  if (is_told("fails")) return NVML_ERROR_UNKNOWN;
  count(1);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) {
  count(-1);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (std::strcmp(uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef") != 0) return NVML_ERROR_NOT_FOUND;
  *device = reinterpret_cast<nvmlDevice_t>(&open_count);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  if (device != reinterpret_cast<nvmlDevice_t>(&open_count)) return NVML_ERROR_NOT_FOUND;
  if (is_told("no-rates")) return NVML_ERROR_NOT_SUPPORTED;
  *utilization = {87, 40};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (device != reinterpret_cast<nvmlDevice_t>(&open_count)) return NVML_ERROR_NOT_FOUND;
  *memory = {80'000'000'000, 67'500'000'000, 12'500'000'000};
  return NVML_SUCCESS;
}
}
