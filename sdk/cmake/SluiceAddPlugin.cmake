# sluice_add_plugin(<name> <source>... [LIBRARIES <target>...])
#
# Builds <name>.so, a plugin for the Sluice host: hidden visibility, exactly one exported symbol, nothing left undefined.
# The target has the plugin's name and is an ordinary one; everything that CMake offers for targets works on it.
function(sluice_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sluice_add_plugin(${name}): name at least one source file")
  endif()
  set(version_script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")

  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE sluice::sdk ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${version_script}")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${version_script}")

  # A sanitizer's runtime is in the host program, so a plugin built with one has undefined symbols by design.
  get_directory_property(link_options LINK_OPTIONS)
  if(NOT "${link_options} ${CMAKE_CXX_FLAGS} ${CMAKE_MODULE_LINKER_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()

  # Set by Sluice's own build only.
  if(DEFINED SLUICE_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${SLUICE_PLUGIN_OUTPUT_DIRECTORY}")
  endif()
endfunction()
