# The headers that nearly all files take are compiled once a tree instead of once a file; reading them is half of the time that
# a small file or a test takes. One precompiled header for each kind of target, as g++ wants it made with the target's flags:
# libraries (-fPIC), programs (-fPIE) and programs of GoogleTest.
#
# g++ forgets the pragmas of a precompiled header, those too by which libstdc++ silences three warnings about itself
# (bits/char_traits.h). Where one is used these warnings are off; so in a tree without sanitizers, whose optimiser finds most with
# them, only tests use one. That also keeps what reads its compile_commands.json with clang (clang-tidy, clangd) from g++'s headers.
# Files go on including what they use: the product's are compiled without in the release tree.
#
# Off where a compiler cache is used, which does not keep what was compiled with one.
set(default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(default OFF)
endif()
option(UIB_PRECOMPILED_HEADERS "Compile the standard headers once" ${default})
if(NOT UIB_PRECOMPILED_HEADERS)
  function(uib_use_precompiled_headers)
  endfunction()
  return()
endif()

set(standard_headers
    <algorithm> <array> <atomic> <cerrno> <chrono> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring> <deque> <functional> <map>
    <memory> <mutex> <optional> <set> <span> <stdexcept> <string> <system_error> <thread> <utility> <vector>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/empty.cc CONTENT "")

# uib_add_headers(NAME POSITION HEADERS...): the target that others reuse, of the flag -fPIC or -fPIE.
function(uib_add_headers name position)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled/empty.cc)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${position})
  target_link_libraries(${name} PRIVATE uib_options)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
if(UIB_SANITIZE)
  uib_add_headers(uib_library_headers -fPIC ${standard_headers})
  uib_add_headers(uib_program_headers -fPIE ${standard_headers})
endif()

# uib_use_precompiled_headers(DIRECTORY): for the targets there and below. Not for those whose flags are their own: the shim
# (the one shared library), modules, and the test that is built as the shim is.
function(uib_use_precompiled_headers directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  list(REMOVE_ITEM targets shim_hooks_test)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(type STREQUAL "STATIC_LIBRARY")
      set(headers uib_library_headers)
    elseif(type STREQUAL "EXECUTABLE" AND libraries MATCHES "GTest::")
      set(headers uib_test_headers)
      if(NOT TARGET uib_test_headers)
        find_package(GTest REQUIRED)
        uib_add_headers(uib_test_headers -fPIE ${standard_headers} <gtest/gtest.h>)
        target_link_libraries(uib_test_headers PRIVATE GTest::gtest)
      endif()
    elseif(type STREQUAL "EXECUTABLE")
      set(headers uib_program_headers)
    else()
      continue()
    endif()
    if(TARGET ${headers})
      target_precompile_headers(${target} REUSE_FROM ${headers})
      target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
    endif()
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(subdirectory IN LISTS below)
    uib_use_precompiled_headers(${subdirectory})
  endforeach()
endfunction()
