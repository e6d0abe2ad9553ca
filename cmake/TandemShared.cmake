# link_into_shared(TARGET): makes a shared library contain the static library tandem.
function(link_into_shared target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tandem_options>)
  if(NOT TANDEM_PORTABLE)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tandem>)
    return()
  endif()
  # What is linked into the program are static libraries of the system, which are not made for shared ones on x86-64.
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:tandem,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:tandem,INTERFACE_COMPILE_DEFINITIONS>)
  target_compile_features(${target} PRIVATE cxx_std_20)
  add_dependencies(${target} tandem)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:$<TARGET_FILE:tandem>> $<BUILD_INTERFACE:tandem_fmt> -ljpeg -lpng -lz
    $<$<BOOL:${TANDEM_WEBP_LIBRARY}>:-lwebp> -lgomp ${CMAKE_DL_LIBS} $<$<BOOL:${TANDEM_CUDA}>:CUDA::cudart_static> Threads::Threads)
endfunction()
