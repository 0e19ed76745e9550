# Run by cpack when the files of a package lie in their folders: what Debian wants otherwise than an installation by hand has it.
file(GLOB_RECURSE compressed RELATIVE "${CPACK_TEMPORARY_DIRECTORY}"
  "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/man?/*.?"
  "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog*")
foreach(file IN LISTS compressed)
  execute_process(COMMAND gzip -9n "${CPACK_TEMPORARY_DIRECTORY}/${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()

file(GLOB zsh_folders "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/zsh/site-functions")
foreach(folder IN LISTS zsh_folders)
  cmake_path(GET folder PARENT_PATH parent)
  file(RENAME "${folder}" "${parent}/vendor-completions")
endforeach()
