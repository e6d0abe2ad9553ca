# Finds OpenBLAS and names it tandem::blas. Used by the build and, installed beside the package, by projects that use
# Tandem: each machine looks for its own, so no path of the builder's travels.
find_path(TANDEM_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-pthread)
find_library(TANDEM_OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
mark_as_advanced(TANDEM_CBLAS_INCLUDE_DIR TANDEM_OPENBLAS_LIBRARY)
if(TANDEM_CBLAS_INCLUDE_DIR AND TANDEM_OPENBLAS_LIBRARY AND NOT TARGET tandem::blas)
  add_library(tandem::blas INTERFACE IMPORTED)
  set_target_properties(tandem::blas PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${TANDEM_CBLAS_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES ${TANDEM_OPENBLAS_LIBRARY})
endif()
