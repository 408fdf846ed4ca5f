# memscale_library(name SOURCES ... [LINK ...]): a static library memscale::name, built with the project's warnings.
add_library(memscale_warnings INTERFACE)
target_compile_options(memscale_warnings INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-restrict -Werror=return-type)
target_include_directories(memscale_warnings INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

function(memscale_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(memscale_${name} STATIC ${ARG_SOURCES})
  add_library(memscale::${name} ALIAS memscale_${name})
  target_link_libraries(memscale_${name} PUBLIC memscale_warnings ${ARG_LINK} PRIVATE ${ARG_PRIVATE})
endfunction()

# memscale_unit_test(name SOURCES ... LINK ...): a GoogleTest program registered with CTest.
function(memscale_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE memscale_warnings ${ARG_LINK} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()
