# One executable and one CTest test for every tests/<area>/test_<what>.c, named <area>.<what> and labelled <area>.
# Other C files of the area are compiled into each of its tests; those in tests/support/ are a library for all.
find_library(CMOCKA_LIBRARY cmocka REQUIRED)
find_path(CMOCKA_INCLUDE cmocka.h REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/test_*.c)
# Teams that sleep while they wait: tests run side by side, and a spinning team keeps the others from their cores.
set(environment "OMP_WAIT_POLICY=passive" "YOKE_TEST_DATA=${CMAKE_SOURCE_DIR}/tests" "YOKE_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "YOKE_BUILD_DIR=${CMAKE_BINARY_DIR}"
  "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1" "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")

set(includes ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests ${CMOCKA_INCLUDE})
# The library once more, with every symbol to be seen: a test looks below the public ones, and links to it in no time.
add_library(yoke_tested SHARED ${objects})
target_link_libraries(yoke_tested PUBLIC ${YOKE_LINKS})
target_link_options(yoke_tested PRIVATE -Wl,-Bsymbolic-functions)
set(links yoke_tested ${CMOCKA_LIBRARY})
if(support)
  add_library(yoke_test_support STATIC ${support})
  target_include_directories(yoke_test_support PRIVATE ${includes})
  target_link_libraries(yoke_test_support PUBLIC ${links})
  set(links yoke_test_support)
endif()

# What is timed is the library, not its tests: those are compiled quickly.
set(brisk $<$<CONFIG:Release>:-O1> $<$<CONFIG:Release>:-Wno-format-truncation>)
foreach(source ${tests})
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(area ${folder} NAME)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^test_" "" what ${name})
  file(GLOB helpers CONFIGURE_DEPENDS ${folder}/*.c)
  list(FILTER helpers EXCLUDE REGEX "/test_[^/]*\\.c$")
  set(target test_${area}_${what})
  add_executable(${target} ${source} ${helpers})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${area})
  target_include_directories(${target} PRIVATE ${includes})
  target_link_libraries(${target} PRIVATE ${links})
  target_compile_options(${target} PRIVATE ${brisk})
  if(NOT TARGET yoke_tests_${area})              # all tests of an area: `cmake --build build --target yoke_tests_run`
    add_custom_target(yoke_tests_${area})
  endif()
  add_dependencies(yoke_tests_${area} ${target})
  add_test(NAME ${area}.${what} COMMAND ${target})
  set_tests_properties(${area}.${what} PROPERTIES LABELS ${area} TIMEOUT 900 ENVIRONMENT "${environment}")
endforeach()

# The long ones begin first: one that is left for the end has a core to itself. Seconds, roughly.
set(yoke_costs model.towers 60 cli.devices_views 40 cli.resume 35 fault.public 40 cli.verify 30 fault.networks 25 cli.hostile 20 cli.devices 20
  cli.precision 20 measure.measure 15 measure.verify 12 model.deterministic 12 cli.bench 10 keras.batches 12 model.strategies 9
  cli.recipes 8 fuzz.files 8 cli.kills 8 cli.runs 8 cli.memory 7 device.dnnl_kernels 7 data.shapes10 7)
while(yoke_costs)
  list(POP_FRONT yoke_costs name cost)
  set_tests_properties(${name} PROPERTIES COST ${cost})
endwhile()

include(cmake/fakes.cmake)

# yoke_lint(NAME COMMAND...): a check of the sources, label "lint".
function(yoke_lint name)
  add_test(NAME lint.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(lint.${name} PROPERTIES LABELS lint TIMEOUT 900)
endfunction()
yoke_lint(layers ${Python3_EXECUTABLE} tools/check_layers.py)
yoke_lint(size ${Python3_EXECUTABLE} tools/check_size.py)
yoke_lint(style ${Python3_EXECUTABLE} tools/lint_style.py)
yoke_lint(docs ${Python3_EXECUTABLE} tools/check_docs.py)
yoke_lint(headers tools/check_headers)
if(NOT YOKE_SANITIZE)
  yoke_lint(symbols tools/check_symbols.sh $<TARGET_FILE:yoke_shared> $<TARGET_FILE:yoke_static>)
endif()

# The README's program as printed, and the examples' output. Sanitized libraries need their runtime first, so not there.
if(YOKE_EXAMPLES AND NOT YOKE_SANITIZE)
  add_test(NAME readme.program COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme/check.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  add_test(NAME examples.output COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/examples/check.py ${CMAKE_BINARY_DIR})
  set_tests_properties(readme.program examples.output PROPERTIES LABELS examples TIMEOUT 900 ENVIRONMENT "${environment}")
endif()
