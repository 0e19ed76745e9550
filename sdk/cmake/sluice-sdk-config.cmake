# find_package(sluice-sdk 1): the target sluice::sdk (headers) and the function sluice_add_plugin.
if(NOT TARGET sluice::sdk)
  include("${CMAKE_CURRENT_LIST_DIR}/sluice-sdk-targets.cmake")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/SluiceAddPlugin.cmake")
