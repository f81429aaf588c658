# Flags that every target of the project shares.
add_library(seqconv_flags INTERFACE)
target_compile_options(seqconv_flags INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# Checks carry the name of their file: not where this machine keeps it.
target_compile_options(seqconv_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
if(SEQCONV_TORCH_DIR)
  target_compile_options(seqconv_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${SEQCONV_TORCH_DIR}/include/=>)
endif()
# Programs and libraries are without what they do not call.
target_compile_options(seqconv_flags INTERFACE -ffunction-sections -fdata-sections)
target_link_options(seqconv_flags INTERFACE LINKER:--gc-sections)
target_include_directories(seqconv_flags INTERFACE
  ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
if(SEQCONV_SANITIZE STREQUAL thread)
  target_compile_options(seqconv_flags INTERFACE
    -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(seqconv_flags INTERFACE -fsanitize=thread)
elseif(SEQCONV_SANITIZE)
  target_compile_options(seqconv_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  # ASan sees an access through a null pointer or outside of an object too, and GCC takes
  # up to twice as long with these. They must come after `undefined`, which has them;
  # the fuzzers, which clang compiles, keep them.
  target_compile_options(seqconv_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-fno-sanitize=null,object-size,pointer-overflow>)
  target_link_options(seqconv_flags INTERFACE -fsanitize=address,undefined)
endif()

# seqconv_precompile(NAME HEADERS ... DEPENDS ...)
#
# Parsing the headers of LibTorch and of GoogleTest is most of a small file's
# compile time: they are parsed once for all targets that have the same flags.
# A source includes what it needs all the same (SEQCONV_PCH=OFF shows it).
function(seqconv_precompile name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS" ${ARGN})
  if(SEQCONV_PCH)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "")
    add_library(seqconv_${name} OBJECT EXCLUDE_FROM_ALL
      ${CMAKE_BINARY_DIR}/${name}.cpp)
    target_link_libraries(seqconv_${name} PRIVATE seqconv_flags ${ARG_DEPENDS})
    target_precompile_headers(seqconv_${name} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()
function(seqconv_use_precompiled name target)
  if(SEQCONV_PCH)
    # A program would be compiled as -fPIE, which these headers are not.
    target_compile_options(${target} PRIVATE -fPIC)
    target_precompile_headers(${target} REUSE_FROM seqconv_${name})
  endif()
endfunction()
# Templates that several files use are made anew in each of them, which takes
# longer than most files do: SEQCONV_UNITY files of a target share them. A name that a
# file keeps to itself must be its own in its target.
function(seqconv_unite target)
  if(SEQCONV_UNITY GREATER 1)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SEQCONV_UNITY})
  endif()
endfunction()
function(seqconv_use_torch_headers target)
  seqconv_use_precompiled(torch_headers ${target})
  seqconv_unite(${target})
endfunction()
if(NOT SEQCONV_RUNTIME_ONLY)
  seqconv_precompile(torch_headers
    HEADERS <ATen/ATen.h> <torch/nn/module.h> <torch/nn/pimpl.h>
    DEPENDS seqconv_torch)
endif()
# A library that exports all, as that of the operators, exports no function of a type
# that is hidden, and these headers' types are what their compilation says.
if(SEQCONV_PCH AND NOT SEQCONV_RUNTIME_ONLY)
  set_target_properties(seqconv_torch_headers PROPERTIES
    CXX_VISIBILITY_PRESET default
    VISIBILITY_INLINES_HIDDEN OFF)
endif()
seqconv_precompile(common_headers
  HEADERS <algorithm> <filesystem> <fstream> <functional> <map> <memory>
    <sstream> <string> <unordered_map> <vector> <nlohmann/json.hpp>)

# seqconv_add_layer(NAME [SHARED] [TORCH] SOURCES ... [DEPENDS ...])
#
# One layer of the house: target seqconv_NAME. TORCH marks the layers that may
# include LibTorch; the others must stay free of it.
function(seqconv_add_layer name)
  cmake_parse_arguments(ARG "SHARED;TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  if(ARG_SHARED)
    add_library(seqconv_${name} SHARED ${ARG_SOURCES})
  else()
    add_library(seqconv_${name} STATIC ${ARG_SOURCES})
  endif()
  target_link_libraries(seqconv_${name} PUBLIC seqconv_flags ${ARG_DEPENDS})
  if(ARG_TORCH)
    target_link_libraries(seqconv_${name} PUBLIC seqconv_torch)
    set_target_properties(seqconv_${name} PROPERTIES
      BUILD_RPATH "${SEQCONV_TORCH_RPATH};$ORIGIN")
    seqconv_use_torch_headers(seqconv_${name})
  else()
    seqconv_use_precompiled(common_headers seqconv_${name})
    seqconv_unite(seqconv_${name})
  endif()
endfunction()

# seqconv_add_test(NAME [GOLDEN] [TORCH [THREADS] | OPTIMISED] SOURCES ... [DEPENDS ...])
#
# One GoogleTest program. Registered with ctest as NAME; with GOLDEN the suites
# whose names hold 'Golden' run as a second entry, NAME.Golden, of the label golden,
# which all tests have that read SEQCONV_GOLDEN. Those without
# TORCH are what the sanitizers are for: target torch_free_tests builds them,
# and ctest knows them by the label torch_free. SEQCONV_TORCH_FREE_TESTS=OFF leaves
# them to that build, but for those OPTIMISED: tests of what is compiled otherwise
# without sanitizers. Those with TORCH have one thread, as little work shared
# among threads is mostly waiting; with THREADS as many as there are cores.
function(seqconv_add_test name)
  cmake_parse_arguments(ARG "GOLDEN;TORCH;THREADS;OPTIMISED" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_TORCH AND NOT ARG_OPTIMISED AND NOT SEQCONV_TORCH_FREE_TESTS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  # A test runs for less time than -O3 takes to compile it.
  if(NOT SEQCONV_SANITIZE)
    target_compile_options(${name} PRIVATE -O1)
  endif()
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
  else()
    seqconv_use_precompiled(test_headers ${name})
    seqconv_unite(${name})
  endif()
  set(_tests ${name})
  if(ARG_GOLDEN)
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=-*Golden*)
    add_test(NAME ${name}.Golden COMMAND ${name} --gtest_filter=*Golden*)
    list(APPEND _tests ${name}.Golden)
  else()
    add_test(NAME ${name} COMMAND ${name})
  endif()
  # Threads that wait for work without sleeping would take the cores from other tests.
  if(ARG_TORCH)
    set(_environment OMP_WAIT_POLICY=passive)
    if(NOT ARG_THREADS)
      list(APPEND _environment OMP_NUM_THREADS=1)
    endif()
    set_tests_properties(${_tests} PROPERTIES ENVIRONMENT "${_environment}")
  endif()
  if(ARG_GOLDEN)
    set_property(TEST ${name}.Golden APPEND PROPERTY LABELS golden)
  endif()
  if(NOT ARG_TORCH)
    add_dependencies(torch_free_tests ${name})
    set_property(TEST ${_tests} APPEND PROPERTY LABELS torch_free)
  endif()
endfunction()
