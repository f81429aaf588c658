# cmake --install BUILD --prefix P (docs/installing.md): the program, the shared
# libraries, the headers of what they offer, the configurations, examples, pages of man and
# packages for CMake and pkg-config. Nothing refers to P, so that it can be moved. The Python
# package is a component of its own (python/), which this leaves out; `runtime`, `development`
# and `program` are what Debian's packages hold (SeqconvPackages.cmake).
include(CMakePackageConfigHelpers)
set(SEQCONV_LIBRARY_FOLDER lib CACHE STRING "Folder of libraries within an installation")

install(TARGETS seqconv RUNTIME DESTINATION bin COMPONENT program)
set(_components runtime)
set(_left_out)
if(SEQCONV_RUNTIME_ONLY)
  set(_left_out PATTERN ops* EXCLUDE PATTERN new_mixer EXCLUDE)
else()
  list(APPEND _components ops)
  set(_libraries seqconv_ops seqconv_engine)
  if(TARGET seqconv_ops_cuda)
    list(APPEND _libraries seqconv_ops_cuda)
  endif()
  if(TARGET seqconv_nccl)
    list(APPEND _libraries seqconv_nccl)
  endif()
  if(TARGET seqconv_mpi)
    install(TARGETS seqconv_mpi LIBRARY DESTINATION ${SEQCONV_LIBRARY_FOLDER})
  endif()
  # Beside each other, and LibTorch at the build's place: the program has loaded
  # the one that is wanted before (src/cli/libtorch.cpp), others may have none.
  set_target_properties(${_libraries} PROPERTIES
    INSTALL_RPATH "$ORIGIN;${SEQCONV_TORCH_RPATH}")
  install(TARGETS ${_libraries} LIBRARY DESTINATION ${SEQCONV_LIBRARY_FOLDER})
endif()

# What other programs embed needs nothing beside it.
install(TARGETS seqconv_api LIBRARY DESTINATION ${SEQCONV_LIBRARY_FOLDER}
  COMPONENT runtime NAMELINK_COMPONENT development)

install(DIRECTORY include/ DESTINATION include COMPONENT development ${_left_out})
install(DIRECTORY examples DESTINATION share/seqconv COMPONENT development ${_left_out})
install(DIRECTORY configs DESTINATION share/seqconv COMPONENT program
  FILES_MATCHING PATTERN "*.toml")
if(NOT CMAKE_CROSSCOMPILING)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/man ${CMAKE_BINARY_DIR}/share/bash-completion
    DESTINATION share COMPONENT program)
endif()

set(_package ${SEQCONV_LIBRARY_FOLDER}/cmake/seqconv)
set(SEQCONV_COMPONENTS ${_components})
configure_package_config_file(
  cmake/seqconvConfig.cmake.in seqconvConfig.cmake
  INSTALL_DESTINATION ${_package}
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(seqconvConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/seqconvConfig.cmake
  ${CMAKE_BINARY_DIR}/seqconvConfigVersion.cmake
  DESTINATION ${_package} COMPONENT development)
file(RELATIVE_PATH SEQCONV_PREFIX_OF_PC /${SEQCONV_LIBRARY_FOLDER}/pkgconfig /)
string(REGEX REPLACE "/$" "" SEQCONV_PREFIX_OF_PC ${SEQCONV_PREFIX_OF_PC})
configure_file(cmake/seqconv_runtime.pc.in seqconv_runtime.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/seqconv_runtime.pc
  DESTINATION ${SEQCONV_LIBRARY_FOLDER}/pkgconfig COMPONENT development)

if(SEQCONV_PACKAGES)
  include(SeqconvPackages)
else()
  install(FILES LICENSE NOTICE DESTINATION share/doc/seqconv OPTIONAL)
endif()
