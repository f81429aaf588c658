# Flags that every target of the project shares.
add_library(seqconv_flags INTERFACE)
target_compile_options(seqconv_flags INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
target_include_directories(seqconv_flags INTERFACE
  ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
if(SEQCONV_SANITIZE)
  target_compile_options(seqconv_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  target_link_options(seqconv_flags INTERFACE -fsanitize=address,undefined)
endif()

# Parsing LibTorch's headers is nearly all of a small file's compile time: they
# are parsed once for all targets that have the same flags.
# A source includes what it needs all the same (SEQCONV_PCH=OFF shows it).
if(SEQCONV_PCH)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/torch_headers.cpp CONTENT "")
  add_library(seqconv_torch_headers OBJECT EXCLUDE_FROM_ALL
    ${CMAKE_BINARY_DIR}/torch_headers.cpp)
  target_link_libraries(seqconv_torch_headers PRIVATE
    seqconv_flags seqconv_torch)
  target_precompile_headers(seqconv_torch_headers PRIVATE
    <ATen/ATen.h> <torch/nn/module.h> <torch/nn/pimpl.h>)
endif()
function(seqconv_use_torch_headers target)
  if(SEQCONV_PCH)
    # A program would be compiled as -fPIE, which these headers are not.
    target_compile_options(${target} PRIVATE -fPIC)
    target_precompile_headers(${target} REUSE_FROM seqconv_torch_headers)
  endif()
endfunction()

# seqconv_add_layer(NAME [SHARED] [TORCH [HEADERS ...]]
#                   SOURCES ... [DEPENDS ...])
#
# One layer of the house: target seqconv_NAME. TORCH marks the layers that may
# include LibTorch; the others must stay free of it (seam 1). HEADERS are
# precompiled for a layer that needs others or has flags of its own.
function(seqconv_add_layer name)
  cmake_parse_arguments(ARG "SHARED;TORCH" "" "HEADERS;SOURCES;DEPENDS" ${ARGN})
  if(ARG_SHARED)
    add_library(seqconv_${name} SHARED ${ARG_SOURCES})
  else()
    add_library(seqconv_${name} STATIC ${ARG_SOURCES})
  endif()
  target_link_libraries(seqconv_${name} PUBLIC seqconv_flags ${ARG_DEPENDS})
  if(ARG_TORCH)
    target_link_libraries(seqconv_${name} PUBLIC seqconv_torch)
    set_target_properties(seqconv_${name} PROPERTIES
      BUILD_RPATH "${SEQCONV_TORCH_RPATH};$ORIGIN"
      INSTALL_RPATH "${SEQCONV_TORCH_RPATH};$ORIGIN")
    if(NOT ARG_HEADERS)
      seqconv_use_torch_headers(seqconv_${name})
    elseif(SEQCONV_PCH)
      target_precompile_headers(seqconv_${name} PRIVATE ${ARG_HEADERS})
    endif()
  endif()
endfunction()

# seqconv_add_test(NAME [GOLDEN] [TORCH] SOURCES ... [DEPENDS ...] [DATA ...])
#
# One GoogleTest program. Registered with ctest as NAME; with GOLDEN the suites
# whose names hold 'Golden' run as a second entry, NAME.Golden.
function(seqconv_add_test name)
  cmake_parse_arguments(ARG "GOLDEN;TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE
    seqconv_flags ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE
    SEQCONV_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    SEQCONV_BINARY_DIR="${CMAKE_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES
    BUILD_RPATH "${SEQCONV_TORCH_RPATH};${CMAKE_BINARY_DIR}/lib")
  if(ARG_TORCH)
    seqconv_use_torch_headers(${name})
  endif()
  if(ARG_GOLDEN)
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=-*Golden*)
    add_test(NAME ${name}.Golden COMMAND ${name} --gtest_filter=*Golden*)
  else()
    add_test(NAME ${name} COMMAND ${name})
  endif()
endfunction()
