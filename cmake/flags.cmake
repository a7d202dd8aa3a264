# Compiler flags of the whole tree. Never -ffast-math: NaN and infinity are reported, not assumed away.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -fno-math-errno -ffp-contract=fast)
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # messages say src/x.c:12, wherever the tree lay
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-pass-failed)        # a loop it could not vectorise is slow, not wrong
endif()
if(YOKE_WERROR)
  add_compile_options(-Werror)
endif()
if(YOKE_SANITIZE)
  add_compile_options(-fsanitize=${YOKE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${YOKE_SANITIZE})
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")      # with assertions
# Lines are enough of a sanitizer's report. -O1 halves the time to compile, and leaves in what -O2 finds to be unneeded; it does
# not know how far a number goes, so how long a text gets is for the other builds to warn of.
if(YOKE_SANITIZE MATCHES "address")
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-Wno-format-truncation)
elseif(YOKE_SANITIZE)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
endif()
add_compile_definitions(_GNU_SOURCE YOKE_VERSION="${PROJECT_VERSION}")

# Instruction sets for which loops are compiled again: name and flags. The driver chooses at run time.
set(YOKE_ISAS baseline)
set(YOKE_ISA_FLAGS_baseline "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND YOKE_ISAS avx2 avx512)
  set(YOKE_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(YOKE_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c)
endif()
