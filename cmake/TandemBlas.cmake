# Finds OpenBLAS and defines tandem::blas. Used by the build and, installed with the package, by projects that use
# Tandem: each machine searches for its own copy, so the package contains no path of the build machine.
find_path(TANDEM_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-pthread)
find_library(TANDEM_OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
mark_as_advanced(TANDEM_CBLAS_INCLUDE_DIR TANDEM_OPENBLAS_LIBRARY)
if(TANDEM_CBLAS_INCLUDE_DIR AND TANDEM_OPENBLAS_LIBRARY AND NOT TARGET tandem::blas)
  add_library(tandem::blas INTERFACE IMPORTED)
  set_target_properties(tandem::blas PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${TANDEM_CBLAS_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES ${TANDEM_OPENBLAS_LIBRARY})
endif()
