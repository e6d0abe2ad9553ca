// The instructions for products of low precision (bf16, 8-bit integers) that this CPU and its kernel offer:
// AMX tiles, AVX-512 dot products, the matrix products of NEON. Elsewhere ordinary code computes them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tandem {

enum class MatrixIsa : std::uint8_t { plain, avx512, amx, neon };
// The factors of a product: bf16 · bf16, summed in f32; u8 · s8, summed exactly in s32.
enum class MatrixType : std::uint8_t { bf16, int8 };

// The fastest instructions for `type`. The environment variable TANDEM_MATRIX (plain, avx512, amx, neon)
// selects slower ones, and TANDEM_SIMD below avx512 excludes avx512 and amx. Throws Error for a value that
// this CPU does not have.
MatrixIsa matrix_isa(MatrixType type);

// All that this process can execute, the fastest last. The first call asks the kernel for the AMX state.
std::vector<MatrixIsa> available_matrix_isas(MatrixType type);
// The one that `wanted` names, or the last of `available` if it is empty; Error if it is not among them.
MatrixIsa choose_matrix_isa(std::string_view wanted, std::span<const MatrixIsa> available);
std::string_view name_of(MatrixIsa isa);  // as in TANDEM_MATRIX

}  // namespace tandem
