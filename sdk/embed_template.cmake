# cmake -DROOT=<sdk> -DFILES=<files of its template, separated by '|'> -DOUTPUT=<source> -P embed_template.cmake
#
# Writes the C++ source that defines sluice::cli::plugin_template, with the text of each file.
string(REPLACE "|" ";" FILES "${FILES}")
list(LENGTH FILES count)
set(source "#include \"host/cli/plugin_template.hpp\"\n\n#include <array>\n\nnamespace sluice::cli {\n\n"
  "std::span<const TemplateFile> plugin_template() {\n  static constexpr std::array<TemplateFile, ${count}> kFiles{{\n")
string(CONCAT source ${source})
foreach(file IN LISTS FILES)
  file(READ "${ROOT}/${file}" text)
  string(REGEX MATCH "^template/([^/]+)/(.+)$" matched "${file}")
  string(APPEND source "{\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\", R\"sluice(${text})sluice\"},\n")
endforeach()
string(APPEND source "}};\n  return kFiles;\n}\n\n}  // namespace sluice::cli\n")
file(WRITE "${OUTPUT}" "${source}")
