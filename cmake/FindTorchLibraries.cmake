# IMPORTED targets torch::c10 and torch::cpu. find_package(Torch) would drag the CUDA toolkit's configuration in.
if(NOT MEMSCALE_TORCH_DIR)
  file(GLOB _candidates ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(LENGTH _candidates _n)
  if(_n EQUAL 0)
    message(FATAL_ERROR "torch not found: expected .venv/lib/python3*/site-packages/torch. Run `make setup`, or pass -DMEMSCALE_TORCH_DIR=<folder of the torch package>.")
  endif()
  list(GET _candidates 0 MEMSCALE_TORCH_DIR)
endif()
foreach(_f lib/libtorch_cpu.so lib/libc10.so include/ATen/ATen.h)
  if(NOT EXISTS ${MEMSCALE_TORCH_DIR}/${_f})
    message(FATAL_ERROR "${MEMSCALE_TORCH_DIR} is no torch package: ${_f} is missing.")
  endif()
endforeach()
message(STATUS "torch: ${MEMSCALE_TORCH_DIR}")

add_library(torch::c10 SHARED IMPORTED)
set_target_properties(torch::c10 PROPERTIES
  IMPORTED_LOCATION ${MEMSCALE_TORCH_DIR}/lib/libc10.so
  INTERFACE_INCLUDE_DIRECTORIES "${MEMSCALE_TORCH_DIR}/include;${MEMSCALE_TORCH_DIR}/include/torch/csrc/api/include")
add_library(torch::cpu SHARED IMPORTED)
set_target_properties(torch::cpu PROPERTIES
  IMPORTED_LOCATION ${MEMSCALE_TORCH_DIR}/lib/libtorch_cpu.so
  INTERFACE_LINK_LIBRARIES torch::c10)
set(CMAKE_BUILD_RPATH ${MEMSCALE_TORCH_DIR}/lib)
