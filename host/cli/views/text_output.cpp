#include "host/cli/views/text_output.hpp"

#include "config/config.hpp"

namespace sluice::cli {

namespace {

std::vector<Flag> flags(std::string_view help) {
  return {{.name = "output", .value = "json|text", .help = help},
          {.name = "json", .value = {}, .help = "the same as --output json"}};
}

}  // namespace

std::vector<Flag> output_flags() {
  return flags("how to show it [default: the SLUICE_OUTPUT variable, else text on a terminal and json in a pipe]");
}

std::vector<Flag> text_output_flags() {
  return flags("how to show it [default: the SLUICE_OUTPUT variable, else text]");
}

OrExit<Output> output_or_text(const Arguments& arguments) {
  const bool said = arguments.has("json") || arguments.has("output") ||
                    !config::process_environment()("SLUICE_OUTPUT").value_or("").empty();
  return said ? arguments.output() : OrExit<Output>(Output::text);
}

}  // namespace sluice::cli
