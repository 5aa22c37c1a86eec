# Kernels: finds nvcc, compiles each src/**/kernels/*.cu to a fat binary, and embeds these in the library.
# Only nvcc's device side is used: nothing of CUDA is linked, and a build without nvcc is the same
# library without kernels.  Gives LADE_CUDA_SOURCES, to be compiled into the library.
#
# nvcc's version is pinned, because the intermediate code of a newer one does not load on a 13.0
# driver.  scripts/nvcc.sh installs it below the build folder.
set(LADE_CUDA AUTO CACHE STRING "build the kernels: ON (a must), AUTO (if nvcc is there), OFF")
set(LADE_CUDA_ONLY "" CACHE STRING "names of .cu files to build alone, for a quick build")
set(LADE_NVCC_VERSION 13.0)
# Machine code for these, and intermediate code of the last for what is newer.
set(LADE_CUDA_ARCHS 80 90)
set(LADE_CUDA_PTX 90)

# The first nvcc of the right version: LADE_NVCC, the build folder's, the system's.
function(lade_find_nvcc found why)
  file(GLOB own ${PROJECT_BINARY_DIR}/nvcc/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc
       ${PROJECT_BINARY_DIR}/../nvcc/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc
       ${PROJECT_SOURCE_DIR}/build/nvcc/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc)
  find_program(system_nvcc nvcc PATHS /usr/local/cuda-${LADE_NVCC_VERSION}/bin /usr/local/cuda/bin
               NO_CACHE)
  set(${found} "" PARENT_SCOPE)
  set(seen "")
  foreach(nvcc ${LADE_NVCC} ${own} ${system_nvcc})
    execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE text ERROR_QUIET
                    RESULT_VARIABLE rc)
    if(rc EQUAL 0 AND text MATCHES "release ${LADE_NVCC_VERSION}, V([0-9.]+)")
      set(${found} ${nvcc} PARENT_SCOPE)
      set(${why} "nvcc ${CMAKE_MATCH_1}, ${nvcc}" PARENT_SCOPE)
      return()
    elseif(rc EQUAL 0 AND text MATCHES "V([0-9.]+)")
      string(APPEND seen "; ${nvcc} is ${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(${why} "no nvcc ${LADE_NVCC_VERSION}${seen} (scripts/nvcc.sh installs it)" PARENT_SCOPE)
endfunction()

set(nvcc "")
set(nvcc_why "LADE_CUDA is OFF")
if(LADE_CUDA)
  lade_find_nvcc(nvcc nvcc_why)
  if(NOT nvcc AND NOT LADE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "kernels: ${nvcc_why}")
  endif()
endif()

set(LADE_IMAGES "")
set(LADE_IMAGE_ROWS "")
set(LADE_ARCH_ROWS "")
set(cuda_images "")
set(cuda_reports "")
if(nvcc)
  set(gencode "")
  foreach(arch ${LADE_CUDA_ARCHS})
    list(APPEND gencode -gencode arch=compute_${arch},code=sm_${arch})
    string(APPEND LADE_ARCH_ROWS "\"sm_${arch}\", ")
  endforeach()
  list(APPEND gencode -gencode arch=compute_${LADE_CUDA_PTX},code=compute_${LADE_CUDA_PTX})
  string(APPEND LADE_ARCH_ROWS "\"compute_${LADE_CUDA_PTX}\", ")
  set(folder ${PROJECT_BINARY_DIR}/cuda)
  file(MAKE_DIRECTORY ${folder})
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS src/*.cu)
  foreach(source ${cuda_sources})
    get_filename_component(name ${source} NAME_WE)
    if(LADE_CUDA_ONLY AND NOT name IN_LIST LADE_CUDA_ONLY)
      continue()
    endif()
    set(image ${folder}/${name}.fatbin)
    add_custom_command(
      OUTPUT ${image} ${folder}/${name}.txt
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${folder}/${name}.txt ${nvcc} -fatbin -std=c++17
              -O3 -lineinfo --resource-usage --compress-mode=size ${gencode}
              -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -MD -MF ${folder}/${name}.d -o ${image} ${source}
      DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh
      DEPFILE ${folder}/${name}.d
      COMMENT "Building kernels ${name}"
      VERBATIM)
    list(APPEND cuda_images ${image})
    list(APPEND cuda_reports ${folder}/${name}.txt)
    string(APPEND LADE_IMAGES "IMAGE(${name}, \"${image}\")\n")
    string(APPEND LADE_IMAGE_ROWS "\t{\"${name}\", lade__image_${name}},\n")
  endforeach()
  # What each kernel takes: registers, shared memory, spills.
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/kernels.txt
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh --table ${PROJECT_BINARY_DIR}/kernels.txt
            ${cuda_reports}
    DEPENDS ${cuda_reports} ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh
    COMMENT "Listing what kernels take in kernels.txt"
    VERBATIM)
  list(APPEND cuda_images ${PROJECT_BINARY_DIR}/kernels.txt)
endif()
message(STATUS "Kernels: ${nvcc_why}")

set(LADE_CUDA_SOURCES ${PROJECT_BINARY_DIR}/cuda/images.c)
configure_file(${PROJECT_SOURCE_DIR}/cmake/images.c.in ${LADE_CUDA_SOURCES} @ONLY)
set_source_files_properties(${LADE_CUDA_SOURCES} PROPERTIES OBJECT_DEPENDS "${cuda_images}")

# A C file in place of the images: that of the emulated device, which the build of the tests makes
# (testing/emu/device.cmake); the Python package is tested so.
set(LADE_IMAGE_FILE "" CACHE FILEPATH "a C file with images of kernels to take instead")
if(LADE_IMAGE_FILE)
  set(LADE_CUDA_SOURCES ${LADE_IMAGE_FILE})
endif()
