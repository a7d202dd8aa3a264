# The benchmark's own programs, into build/bench/: `cmake --build build --target yoke_bench`, or `make bench`. Not part of `all`.
# Yoke's step is linked to the static library but sees public headers only; the floor uses oneDNN alone, through the same small
# header over its versions as the CPU driver, compiled for this very processor.
foreach(program step update reduce lstm branches layers load long)
  add_executable(bench_yoke_${program} EXCLUDE_FROM_ALL bench/yoke_${program}.c bench/common.c)
  target_include_directories(bench_yoke_${program} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(bench_yoke_${program} PRIVATE yoke_static)
  set_target_properties(bench_yoke_${program} PROPERTIES OUTPUT_NAME yoke_${program} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  list(APPEND bench_programs bench_yoke_${program})
endforeach()
target_sources(bench_yoke_lstm PRIVATE bench/lstm_net.c)
target_sources(bench_yoke_branches PRIVATE bench/lstm_net.c)

file(GLOB bench_floor_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/floor*.c)
add_executable(bench_floor EXCLUDE_FROM_ALL ${bench_floor_sources} bench/common.c src/backend/cpu/dnnl_compat.c)
target_include_directories(bench_floor PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${DNNL_INCLUDE})
target_link_libraries(bench_floor PRIVATE ${DNNL_LIBRARY} OpenMP::OpenMP_C m)
include(CheckCCompilerFlag)
check_c_compiler_flag(-march=native YOKE_HAS_MARCH_NATIVE)
target_compile_options(bench_floor PRIVATE -O3 -fno-trapping-math $<$<BOOL:${YOKE_HAS_MARCH_NATIVE}>:-march=native>)

target_compile_options(bench_yoke_update PRIVATE -O3 $<$<BOOL:${YOKE_HAS_MARCH_NATIVE}>:-march=native>)

set_target_properties(bench_floor PROPERTIES OUTPUT_NAME floor RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
add_custom_target(yoke_bench DEPENDS ${bench_programs} bench_floor)

# Do they still run, and print what bench/run reads? A fraction of a second each; the times mean nothing.
if(YOKE_TESTS)
  set(yoke_bench_check ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/bench/check_line.py)
  set_target_properties(${bench_programs} bench_floor PROPERTIES EXCLUDE_FROM_ALL OFF)
  add_test(NAME bench.trivial COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_step> trivial cpu:0 2 0.05)
  foreach(model cifar10 resnet20 mlp lstm)
    if(NOT model STREQUAL "lstm")              # bench.lstm is that
      add_test(NAME bench.yoke_${model} COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_step> ${model} cpu:0 4 0.05)
      list(APPEND yoke_bench_tests bench.yoke_${model})
    endif()
    if(NOT YOKE_SANITIZE MATCHES "thread")     # it does not understand libgomp's barriers
      add_test(NAME bench.floor_${model} COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_floor> ${model} 4 0.05)
      list(APPEND yoke_bench_tests bench.floor_${model})
    endif()
  endforeach()
  add_test(NAME bench.yoke_two_devices COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_step> mlp gpu:0,gpu:1 4 0.05)
  add_test(NAME bench.update COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_update> lamb 0.1 0.05)
  add_test(NAME bench.reduce COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_reduce> 2 0.1 0.05)
  add_test(NAME bench.lstm COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_lstm> lstm 2 0.05)
  add_test(NAME bench.branches COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_branches> 2 0.05)
  add_test(NAME bench.layers COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_layers> 4 0.05)
  add_test(NAME bench.load COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_load> 1 0.05)
  add_test(NAME bench.long COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_long> steady 60)
  add_test(NAME bench.checkpoint COMMAND ${yoke_bench_check} $<TARGET_FILE:bench_yoke_long> checkpoint 2 0.05 mlp)
  set_tests_properties(bench.trivial bench.long bench.checkpoint bench.update bench.reduce bench.lstm bench.branches bench.layers bench.load
                       bench.yoke_two_devices ${yoke_bench_tests} PROPERTIES LABELS bench TIMEOUT 900
    ENVIRONMENT "OMP_NUM_THREADS=1;OMP_WAIT_POLICY=passive")     # a team that spins is very slow on a busy machine
endif()
