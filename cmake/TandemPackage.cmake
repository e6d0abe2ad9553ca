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
endif()

string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" platform)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_INSTALL_CMAKE_PROJECTS ${CMAKE_CURRENT_BINARY_DIR} tandem program /)
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR "The Tandem authors")
set(CPACK_PACKAGE_CONTACT "The Tandem authors")
set(CPACK_PACKAGE_FILE_NAME tandem-${PROJECT_VERSION}-${platform})
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME ${CPACK_PACKAGE_FILE_NAME}.deb)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Opened at run time: downloads, and decoders of TIFF and HEIC. The alternatives are the names since Ubuntu 24.04.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, libcurl4 | libcurl4t64, libtiff6, libheif1")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "image classifiers on CPUs, GPUs and clusters")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Trains, evaluates and uses image classifiers without Python, and measures what
parallelism buys on the machine at hand. Uses an NVIDIA GPU if its driver, cuBLAS
and cuDNN are installed.")
include(CPack)
