#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/views/output.hpp"
#include "host/observe/build_info.hpp"

namespace sluice::cli {

namespace {

Exit version(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, output_or_text(arguments));
  const auto build = observe::build_info();
  if (*output == Output::text) {
    console.out("sluice " + build.version + " (plugin ABI " + build.abi + ", " + build.compiler + ", " +
                build.build_type + ")\n");
    return Exit::ok();
  }
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("version", build.version);
  json.member("abi", build.abi);
  json.member("compiler", build.compiler);
  json.member("build_type", build.build_type);
  json.end_object();
  console.out(json.take_line());
  return Exit::ok();
}

}  // namespace

Command version_command() {
  return {
      .name = "version",
      .group = "Host",
      .summary = "Print the version, and the plugin ABI it speaks",
      .usage = "[--output json|text]",
      .description = "Plugins built for the same major ABI version, and for the same or an earlier minor one, load.",
      .flags = text_output_flags(),
      .examples = "sluice version --json",
      .run = version,
  };
}

}  // namespace sluice::cli
