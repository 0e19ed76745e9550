#include "host/cli/text_output.hpp"

#include "config/config.hpp"

namespace sluice::cli {

Flag output_flag() {
  return {.name = "output",
          .value = "json|text",
          .help = "how to show it [default: the SLUICE_OUTPUT variable, else json]"};
}

Flag text_output_flag() {
  Flag flag = output_flag();
  flag.help = "how to show it [default: the SLUICE_OUTPUT variable, else text]";
  return flag;
}

OrExit<Output> output_or_text(const Arguments& arguments) {
  if (arguments.has("json") && arguments.has("output")) {
    return Exit::usage("--json and --output exclude each other; give one");
  }
  if (arguments.has("json")) {
    return Output::json;
  }
  const bool unsaid = !arguments.has("output") && config::process_environment()("SLUICE_OUTPUT").value_or("").empty();
  return unsaid ? OrExit<Output>(Output::text) : arguments.output();
}

}  // namespace sluice::cli
