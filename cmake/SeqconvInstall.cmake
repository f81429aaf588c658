# cmake --install BUILD --prefix P (docs/installing.md): the program, the shared
# libraries, the headers of what they offer, the configurations, examples and a
# CMake package. Nothing refers to P, so that it can be moved. The Python package is a
# component of its own (python/), which this leaves out.
include(CMakePackageConfigHelpers)

set(_libraries seqconv_ops seqconv_engine)
if(TARGET seqconv_ops_cuda)
  list(APPEND _libraries seqconv_ops_cuda)
endif()
if(TARGET seqconv_nccl)
  list(APPEND _libraries seqconv_nccl)
endif()
if(TARGET seqconv_mpi)
  install(TARGETS seqconv_mpi LIBRARY DESTINATION lib)
endif()
# Beside each other, and LibTorch at the build's place: the program has loaded
# the one that is wanted before (src/cli/libtorch.cpp), others may have none.
set_target_properties(${_libraries} PROPERTIES
  INSTALL_RPATH "$ORIGIN;${SEQCONV_TORCH_RPATH}")
install(TARGETS seqconv RUNTIME DESTINATION bin)
install(TARGETS ${_libraries} LIBRARY DESTINATION lib)

# What other programs embed needs nothing beside it.
install(TARGETS seqconv_api LIBRARY DESTINATION lib)

install(DIRECTORY include/ DESTINATION include)

install(DIRECTORY configs DESTINATION share/seqconv
  FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY examples DESTINATION share/seqconv)
install(FILES LICENSE NOTICE DESTINATION share/doc/seqconv OPTIONAL)

set(_package lib/cmake/seqconv)
configure_package_config_file(
  cmake/seqconvConfig.cmake.in seqconvConfig.cmake
  INSTALL_DESTINATION ${_package}
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(seqconvConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/seqconvConfig.cmake
  ${CMAKE_BINARY_DIR}/seqconvConfigVersion.cmake
  DESTINATION ${_package})
