# CMAKE_CUDA_ARCHITECTURES of what PyTorch's extensions read, or our own choice.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT "$ENV{TORCH_CUDA_ARCH_LIST}" MATCHES "^[ ;]*$")
  # As PyTorch's extensions read it: "7.5;8.6+PTX", also with spaces.
  string(REGEX REPLACE "[ ;]+" ";" _named "$ENV{TORCH_CUDA_ARCH_LIST}")
  set(_architectures)
  list(REMOVE_ITEM _named "")
  foreach(_name IN LISTS _named)
    if(NOT _name MATCHES "^([0-9]+)\\.([0-9])([af]?)(\\+PTX)?$")
      message(FATAL_ERROR
        "TORCH_CUDA_ARCH_LIST must name compute capabilities as 7.5 or 8.6+PTX, "
        "but got '${_name}'.")
    endif()
    set(_number ${CMAKE_MATCH_1}${CMAKE_MATCH_2}${CMAKE_MATCH_3})
    if(CMAKE_MATCH_4)
      list(APPEND _architectures ${_number})
    else()
      list(APPEND _architectures ${_number}-real)
    endif()
  endforeach()
  set(CMAKE_CUDA_ARCHITECTURES ${_architectures} CACHE STRING
    "Compute capabilities to compile for, 75 and later")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # Machine code for T4, A100 and H100/H200; the PTX of the last runs on later ones.
  set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;90" CACHE STRING
    "Compute capabilities to compile for, 75 and later")
endif()
foreach(_architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
  if(_architecture MATCHES "^([0-9]+)")
    if(CMAKE_MATCH_1 LESS 75)
      message(FATAL_ERROR
        "The CUDA operators need compute capability 7.5 or later, but got "
        "'${_architecture}' in CMAKE_CUDA_ARCHITECTURES.")
    endif()
  endif()
endforeach()
