# sluice_add_plugin(<name> <source>... [LIBRARIES <target>...])
#
# Builds <name>.so, a plugin for the Sluice host: hidden visibility, exactly one exported symbol, nothing left undefined.
# The target has the plugin's name and is an ordinary one; everything that CMake offers for targets works on it.
# Where the program `sluice` is installed, a test validate_<name> with the label "validate" tries to break the plugin.
function(sluice_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sluice_add_plugin(${name}): name at least one source file")
  endif()
  if("${ARGV1}" MATCHES "^(STATIC|SHARED|MODULE|OBJECT)$")
    message(FATAL_ERROR "sluice_add_plugin(${name}): leave ${ARGV1} out; a plugin is always a shared object that the host loads")
  endif()
  set(version_script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")

  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE sluice::sdk ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${version_script}")
  # Undefined, so that it is found in a static library of LIBRARIES too.
  target_link_options(${name} PRIVATE "LINKER:--version-script=${version_script}" "LINKER:--undefined=sluice_plugin_v1")
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} "-DFILE=$<TARGET_FILE:${name}>" "-DNAME=${name}" "-DNM=${CMAKE_NM}"
            -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/CheckPlugin.cmake"
    VERBATIM)

  # A sanitizer's runtime is in the host program, so a plugin built with one has undefined symbols by design.
  get_directory_property(link_options LINK_OPTIONS)
  if(NOT "${link_options} ${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${CMAKE_MODULE_LINKER_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()

  # Set by Sluice's own build only, which has no program yet.
  if(DEFINED SLUICE_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${SLUICE_PLUGIN_OUTPUT_DIRECTORY}")
    return()
  endif()
  find_program(SLUICE_PROGRAM sluice)
  if(SLUICE_PROGRAM AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME validate_${name} COMMAND "${SLUICE_PROGRAM}" plugin validate "$<TARGET_FILE:${name}>")
    set_tests_properties(validate_${name} PROPERTIES LABELS validate)
  endif()
endfunction()
