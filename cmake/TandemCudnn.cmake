# Finds cuDNN, next to the CUDA toolkit or in the system paths, and defines tandem::cudnn. Used like TandemBlas.
find_path(TANDEM_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(TANDEM_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(TANDEM_CUDNN_INCLUDE_DIR TANDEM_CUDNN_LIBRARY)
if(TANDEM_CUDNN_INCLUDE_DIR AND TANDEM_CUDNN_LIBRARY AND NOT TARGET tandem::cudnn)
  add_library(tandem::cudnn INTERFACE IMPORTED)
  set_target_properties(tandem::cudnn PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${TANDEM_CUDNN_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES ${TANDEM_CUDNN_LIBRARY})
endif()
