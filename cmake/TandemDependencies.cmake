# Everything Tandem links. All of it is in Debian 12 and Ubuntu 24.04 (scripts/install-dependencies).
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)

find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-pthread REQUIRED)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread REQUIRED)
add_library(tandem_blas INTERFACE)
target_include_directories(tandem_blas SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
target_link_libraries(tandem_blas INTERFACE ${OPENBLAS_LIBRARY})

set(tandem_private_dependencies tandem_blas OpenMP::OpenMP_CXX Threads::Threads nlohmann_json::nlohmann_json
    JPEG::JPEG PNG::PNG)

if(TANDEM_CUDA)
  find_package(CUDAToolkit REQUIRED)
  list(APPEND tandem_private_dependencies CUDA::cudart_static CUDA::cublas CUDA::cublasLt)
endif()
