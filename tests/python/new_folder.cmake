# cmake -P new_folder.cmake FOLDER: an empty folder.
file(REMOVE_RECURSE ${CMAKE_ARGV3})
file(MAKE_DIRECTORY ${CMAKE_ARGV3})
