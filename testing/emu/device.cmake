# SPDX-License-Identifier: Apache-2.0
# The emulated device (docs/emulated-warp.md): a libcuda.so.1 whose kernels are those of src,
# each file compiled for the CPU with the hooks of tests/kernels.  It is made in the folder
# 'emulated' of who includes this, with images.c beside it, the library's images of its kernels.
# EMULATED_ONLY, if set, names the .cu files that it has; others are not built.  Under TSan fibers
# are switched behind its back, so nothing of this library is compiled for it.
enable_language(CXX)
cmake_path(SET EMULATED_TREE NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
file(GLOB EMULATED_SOURCES CONFIGURE_DEPENDS ${EMULATED_TREE}/testing/emu/*.cc
     ${EMULATED_TREE}/testing/emu/device/*.cc)
file(GLOB_RECURSE EMULATED_CU CONFIGURE_DEPENDS ${EMULATED_TREE}/src/*.cu)

# A .cu file's kernels are its declarations: extern "C" __global__ void lade_name(.
set(EMULATED_ROWS "")
set(KERNEL_ROWS "")
set(EMULATED_KERNELS "")
foreach(source ${EMULATED_CU})
  get_filename_component(name ${source} NAME_WE)
  if(EMULATED_ONLY AND NOT name IN_LIST EMULATED_ONLY)
    continue()
  endif()
  string(APPEND EMULATED_ROWS "\tIMAGE(${name})\n")
  set(text "#include \"${source}\"\n#include \"emu/device/kernel.h\"\n")
  file(READ ${source} kernels)
  string(REPLACE ";" "" kernels "${kernels}")
  string(REGEX MATCHALL "\nextern \"C\" __global__ [^{]*[ \t\n]lade_[a-z0-9_]+\\(" kernels
         "${kernels}")
  foreach(kernel ${kernels})
    string(REGEX MATCH "lade_[a-z0-9_]+" kernel "${kernel}")
    string(APPEND text "EMULATED_KERNEL(${name}, ${kernel})\n")
    string(APPEND KERNEL_ROWS "\t{\"${name}\", \"${kernel}\", 0},\n")
  endforeach()
  file(CONFIGURE OUTPUT emulated/${name}.cc CONTENT "${text}" @ONLY)
  list(APPEND EMULATED_KERNELS ${CMAKE_CURRENT_BINARY_DIR}/emulated/${name}.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endforeach()
configure_file(${EMULATED_TREE}/testing/emu/device/images.c.in images.c @ONLY)

add_library(emulated SHARED ${EMULATED_SOURCES} ${EMULATED_KERNELS})
target_include_directories(emulated PRIVATE ${EMULATED_TREE}/src ${EMULATED_TREE}/include
                           ${EMULATED_TREE}/testing ${EMULATED_TREE}/tests)
set_target_properties(emulated PROPERTIES PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1 NO_SONAME ON
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/emulated
                      CXX_STANDARD 17 CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_compile_options(emulated PRIVATE -O2 -g1 -fno-exceptions -fno-rtti -Wno-unknown-pragmas
                       -Wno-missing-field-initializers)
if(LADE_SANITIZE MATCHES "thread")
  target_compile_options(emulated PRIVATE -fno-sanitize=thread)
endif()
set(EMULATED_HOOKS -fsanitize-coverage=trace-pc)
if(NOT LADE_SANITIZE)
  list(APPEND EMULATED_HOOKS -fsanitize=thread -fno-tree-vectorize
       -fno-tree-loop-distribute-patterns -fno-builtin-memset -fno-builtin-memcpy
       -fno-builtin-memmove)
  target_link_options(emulated PRIVATE -Wl,--wrap=memset -Wl,--wrap=memcpy -Wl,--wrap=memmove)
endif()
set_source_files_properties(${EMULATED_KERNELS} PROPERTIES COMPILE_OPTIONS "${EMULATED_HOOKS}")
target_link_libraries(emulated PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
