# cmake --build … --target package: a .deb and a .tar.gz with the program (preset package: see TANDEM_PORTABLE).
# scripts/check-package installs and runs them on a bare system.
set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/tandem)
install(FILES README.md CHANGELOG.md DESTINATION ${doc_dir} COMPONENT program)
install(FILES LICENSE DESTINATION ${doc_dir} COMPONENT program RENAME copyright)
if(TANDEM_PORTABLE)  # the licenses of what is linked into the program
  foreach(package libjpeg-dev libpng-dev zlib1g-dev libwebp-dev libfmt-dev libgomp1 nlohmann-json3-dev
          libcli11-dev)
    if(EXISTS /usr/share/doc/${package}/copyright)
      install(FILES /usr/share/doc/${package}/copyright DESTINATION ${doc_dir}/licenses COMPONENT program
              RENAME ${package})
    endif()
  endforeach()
  install(CODE "execute_process(COMMAND \"${CMAKE_CURRENT_SOURCE_DIR}/scripts/make-sbom\" --version ${PROJECT_VERSION}
    -o \"${CMAKE_CURRENT_BINARY_DIR}/sbom.spdx.json\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sbom.spdx.json DESTINATION ${doc_dir} COMPONENT program)
endif()

string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" platform)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_INSTALL_CMAKE_PROJECTS ${CMAKE_CURRENT_BINARY_DIR} tandem program /)
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR "The Tandem authors")
set(CPACK_PACKAGE_CONTACT "The Tandem authors")
set(CPACK_PACKAGE_FILE_NAME tandem-${PROJECT_VERSION}-${platform})
set(CPACK_STRIP_FILES ON)
# The same bytes wherever the package is made: neither the umask, the number of cores nor the order of a folder matters.
set(CPACK_THREADS 2)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/TandemSamePackage.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CPACK_PRE_BUILD_SCRIPTS})
set(CPACK_TANDEM_SOURCE ${CMAKE_CURRENT_SOURCE_DIR})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tandem)
set(CPACK_DEBIAN_PROGRAM_FILE_NAME ${CPACK_PACKAGE_FILE_NAME}.deb)
# The Python package is a .deb of its own, for the Python it was built with (see TandemCPack.cmake).
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_SOURCE_DIR}/cmake/TandemCPack.cmake)
if(TARGET tandem_python)
  set(CPACK_TANDEM_COMPONENTS program python)
  math(EXPR next_minor "${TANDEM_PYTHON_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-tandem)
  set(CPACK_DEBIAN_PYTHON_FILE_NAME python3-${CPACK_PACKAGE_FILE_NAME}.deb)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "tandem (= ${PROJECT_VERSION}), python3-numpy, python3 (>= 3.${TANDEM_PYTHON_MINOR}), python3 (<< 3.${next_minor})")
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "The Python package: trains image classifiers, and classifies NumPy arrays, PIL images and files with them.")
else()
  set(CPACK_TANDEM_COMPONENTS program)
endif()
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Opened at run time: downloads, and decoders of TIFF and HEIC. The alternatives are the names since Ubuntu 24.04.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "ca-certificates, libcurl4 | libcurl4t64, libtiff6, libheif1")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "image classifiers on CPUs, GPUs and clusters")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "Trains, evaluates and uses image classifiers without Python, and measures what
parallelism buys on the machine at hand. Uses an NVIDIA GPU if its driver, cuBLAS
and cuDNN are installed.")
include(CPack)
