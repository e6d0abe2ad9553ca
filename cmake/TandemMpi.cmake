# The MPI plugin, libtandem_mpi.so: the program opens it when srun or mpirun started it, and neither is linked to the
# other. Optional: without MPI, or with -DTANDEM_MPI=OFF, everything else is built. Packages contain only its source, as
# the libraries of different MPIs do not fit each other.
option(TANDEM_MPI "Build the MPI plugin if MPI is found" ON)
set(mpi_source_dir ${CMAKE_INSTALL_DATAROOTDIR}/tandem/mpi)
install(FILES tandem/dist/mpi/mpi_transport.c DESTINATION ${mpi_source_dir} COMPONENT program)
install(FILES tandem/dist/transport_abi.h DESTINATION ${mpi_source_dir}/tandem/dist COMPONENT program)

if(TANDEM_MPI)
  check_language(C)
  if(CMAKE_C_COMPILER)
    enable_language(C)
    set(find_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
    set(CMAKE_FIND_LIBRARY_SUFFIXES .so)  # a plugin cannot use a static MPI, which TANDEM_PORTABLE would prefer
    find_package(MPI QUIET COMPONENTS C)
    set(CMAKE_FIND_LIBRARY_SUFFIXES ${find_suffixes})
  endif()
endif()
if(MPI_C_FOUND)
  add_library(tandem_mpi MODULE tandem/dist/mpi/mpi_transport.c)
  target_include_directories(tandem_mpi PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(tandem_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_compile_options(tandem_mpi PRIVATE -Wall -Wextra ${werror})
  target_link_libraries(tandem_mpi PRIVATE MPI::MPI_C)
  set_target_properties(tandem_mpi PROPERTIES C_STANDARD 99 INSTALL_RPATH_USE_LINK_PATH ON
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  install(TARGETS tandem_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tandem COMPONENT mpi)
else()
  message(STATUS "Without the MPI plugin: MPI was not found, or is turned off. Ranks of one machine do not need it.")
endif()
