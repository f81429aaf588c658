# Packages for Debian, which `cpack` makes of the components of SeqconvInstall.cmake
# (docs/packaging.md): the library, the program without training, and what compiling against
# the library needs.
set(SEQCONV_MAINTAINER "The seqconv authors <maintainers@seqconv.invalid>" CACHE STRING
  "Name and address of who answers for the packages")
set(SEQCONV_DEBIAN_VERSION ${PROJECT_VERSION}-1)
set(_library libseqconv-runtime${SEQCONV_INTERFACE})
# The time of SOURCE_DATE_EPOCH, where that is set.
string(TIMESTAMP SEQCONV_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)

configure_file(packaging/changelog.in changelog.Debian @ONLY)
foreach(_part "${_library};runtime" "seqconv;program" "libseqconv-dev;development")
  list(GET _part 0 _name)
  list(GET _part 1 _component)
  set(_place DESTINATION share/doc/${_name} COMPONENT ${_component})
  install(FILES ${CMAKE_BINARY_DIR}/changelog.Debian packaging/copyright ${_place})
  install(FILES CHANGELOG.md RENAME changelog ${_place})
  if(NOT _component STREQUAL "development")
    install(FILES NOTICE ${SEQCONV_PARTS_FILE} ${_place})
  endif()
  install(FILES packaging/overrides/${_component} RENAME ${_name}
    DESTINATION share/lintian/overrides COMPONENT ${_component})
endforeach()
install(FILES packaging/seqconv-serve.service DESTINATION lib/systemd/system COMPONENT program)
# Debian's place for examples leads to that of every installation.
file(CREATE_LINK ../../seqconv/examples ${CMAKE_BINARY_DIR}/examples SYMBOLIC)
install(FILES ${CMAKE_BINARY_DIR}/examples DESTINATION share/doc/libseqconv-dev
  COMPONENT development)
install(DIRECTORY docs/ DESTINATION share/doc/seqconv/docs COMPONENT program
  PATTERN "*.svg" EXCLUDE PATTERN "*.png" EXCLUDE)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME seqconv)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/SeqconvCompress.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${SEQCONV_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SOURCE seqconv)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(_models "Models are those of LightConv, DynamicConv and TaLK convolutions, and of
self-attention to compare: for translation, for summaries and of language.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${_library})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/triggers)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "runs trained attention-free sequence models
This library translates, summarises, scores and writes text on the CPU, for
programs in C, C++ and what can call them.
.
${_models}")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME seqconv)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "translates and writes with attention-free models
The program translates, summarises, scores, writes and evaluates text on the
CPU, and imports, quantizes and inspects models. Training needs LibTorch and
is not a part of this package.
.
${_models}")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libseqconv-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${_library} (= ${SEQCONV_DEBIAN_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "headers of the library of attention-free models
What compiling against libseqconv_runtime needs: headers for C and C++,
packages for CMake and pkg-config, and examples.
.
${_models}")
include(CPack)
