// cuBLAS and cuDNN are opened when one of their functions is first called, so that one program runs on
// machines with and without a GPU and a perceptron does not wait for cuDNN. vendor_libraries_cuda.cpp defines
// the functions of their headers that Tandem calls; a further function needs a definition there.
#pragma once

#include <string>

namespace tandem {

// The first vendor library that is not installed, as a clause: "cuDNN 9 is not installed (libcudnn.so.9)".
// Empty when all are.
std::string missing_vendor_library();

}  // namespace tandem
