# Read by cpack for each generator: one .deb per component; the .tar.gz has the program alone.
if(CPACK_GENERATOR STREQUAL DEB)
  list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build_folder)
  set(CPACK_INSTALL_CMAKE_PROJECTS ${build_folder} tandem ALL /)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_ALL ${CPACK_TANDEM_COMPONENTS})
endif()
