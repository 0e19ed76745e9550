# Run by sluice_add_plugin when FILE has been built from the target NAME: whether it is a plugin at all.
execute_process(COMMAND "${NM}" -D --defined-only "${FILE}" OUTPUT_VARIABLE symbols RESULT_VARIABLE failed ERROR_QUIET)
if(NOT failed AND NOT symbols MATCHES "sluice_plugin_v1")
  file(REMOVE "${FILE}")
  message(FATAL_ERROR "sluice_add_plugin(${NAME}): no source has SLUICE_PLUGIN, or it stands inside a namespace; end one "
    "of them with SLUICE_PLUGIN(\"${NAME}\", \"1.0.0\", YourHandler), outside of any namespace")
endif()
