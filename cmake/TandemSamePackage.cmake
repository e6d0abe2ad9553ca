# Run by cpack before and after it writes a package. Before: folders get their mode, which the umask has changed. After:
# the .tar.gz is written again with sorted names and without the user who made it; CPack takes the order of the file system.
file(CHMOD_RECURSE ${CPACK_TEMPORARY_DIRECTORY} DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
     GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
foreach(archive IN LISTS CPACK_PACKAGE_FILES)
  if(NOT archive MATCHES "[.]tar[.]gz$")
    continue()
  endif()
  set(mtime)
  if(DEFINED ENV{SOURCE_DATE_EPOCH})
    set(mtime --mtime=@$ENV{SOURCE_DATE_EPOCH})
  endif()
  string(REGEX REPLACE "[.]gz$" "" tar ${archive})
  execute_process(COMMAND tar --create --file=${tar} --format=gnu --sort=name --owner=root:0 --group=root:0 ${mtime}
                          --directory=${CPACK_TOPLEVEL_DIRECTORY} ${CPACK_PACKAGE_FILE_NAME}
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND gzip --no-name --best --force ${tar} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
