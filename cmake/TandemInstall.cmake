# cmake --install: the library, its headers, the program and a CMake package, so that another project can say
# find_package(tandem) and link tandem::tandem (examples/ does).
include(CMakePackageConfigHelpers)
install(TARGETS tandem tandem_options tandem_blas EXPORT tandem-targets)
install(TARGETS tandem_app RUNTIME)
install(DIRECTORY tandem/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
install(EXPORT tandem-targets NAMESPACE tandem:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
configure_package_config_file(cmake/tandem-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tandem-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tandem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tandem-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tandem-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
