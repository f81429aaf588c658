# Called by cpack on what it has put together: pages of man, lists of changes and licences are
# compressed, as Debian wants them, and without a time.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE _files ${CPACK_TEMPORARY_DIRECTORY}/*)
list(FILTER _files INCLUDE REGEX "/man1/[^/]*[.]1$|/doc/[^/]*/(changelog|changelog[.]Debian|parts)$")
foreach(_file IN LISTS _files)
  execute_process(COMMAND gzip -9n ${_file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
