#include "tandem/core/matrix_isa.h"

#include <cstdlib>
#include <string>

#include "tandem/core/check.h"
#include "tandem/core/simd.h"

#if defined(__x86_64__)
#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tandem {
namespace {

struct Features {
  bool dot = false;  // AVX-512
  bool amx = false;
  bool neon = false;
};

#if defined(__x86_64__)

// AMX registers must be requested from the kernel, once per process.
bool request_amx_state() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return granted;
}

Features features_of_this_cpu(MatrixType type) {
  if (simd_level() < SimdLevel::avx512) return {};
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return {};
  const bool tiles = (edx >> 24) & 1, tile_bf16 = (edx >> 22) & 1, tile_int8 = (edx >> 25) & 1,
             vnni = (ecx >> 11) & 1;
  const unsigned last_leaf = eax;
  const bool bf16 =
      last_leaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && ((eax >> 5) & 1) != 0;
  const bool is_bf16 = type == MatrixType::bf16;
  // The kernels for tiles also use AVX-512-BF16, which every CPU with tiles has.
  return {.dot = is_bf16 ? bf16 : vnni,
          .amx = tiles && (is_bf16 ? tile_bf16 : tile_int8) && bf16 && vnni && request_amx_state()};
}

#elif defined(__aarch64__) && defined(__linux__)

Features features_of_this_cpu(MatrixType type) {
  const unsigned long capabilities = getauxval(AT_HWCAP2);
  return {.neon = (capabilities & (type == MatrixType::bf16 ? HWCAP2_BF16 : HWCAP2_I8MM)) != 0};
}

#else

Features features_of_this_cpu(MatrixType) {
  return {};
}

#endif

}  // namespace

std::vector<MatrixIsa> available_matrix_isas(MatrixType type) {
  const Features features = features_of_this_cpu(type);
  std::vector<MatrixIsa> available{MatrixIsa::plain};
  if (features.dot) available.push_back(MatrixIsa::avx512);
  if (features.amx) available.push_back(MatrixIsa::amx);
  if (features.neon) available.push_back(MatrixIsa::neon);
  return available;
}

MatrixIsa choose_matrix_isa(std::string_view wanted, std::span<const MatrixIsa> available) {
  if (wanted.empty()) return available.back();
  std::string words;
  for (const MatrixIsa isa : available) {
    if (wanted == name_of(isa)) return isa;
    words += (words.empty() ? "" : ", ") + std::string(name_of(isa));
  }
  fail("TANDEM_MATRIX: expected one of {}, which this CPU has, got '{}'", words, wanted);
}

MatrixIsa matrix_isa(MatrixType type) {
  const auto choose = [](MatrixType of) {
    const char* const wanted = std::getenv("TANDEM_MATRIX");
    return choose_matrix_isa(wanted ? wanted : "", available_matrix_isas(of));
  };
  if (type == MatrixType::bf16) {
    static const MatrixIsa isa = choose(MatrixType::bf16);
    return isa;
  }
  static const MatrixIsa isa = choose(MatrixType::int8);
  return isa;
}

std::string_view name_of(MatrixIsa isa) {
  constexpr std::string_view names[] = {"plain", "avx512", "amx", "neon"};
  return names[static_cast<int>(isa)];
}

}  // namespace tandem
