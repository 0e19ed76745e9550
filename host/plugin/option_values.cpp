#include <cstring>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "host/plugin/handler_instance.hpp"
#include "sluice/options.hpp"

namespace sluice::plugin {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string unknown_option(const sluice_handler& handler, const std::string& name) {
  const auto names = mapped(std::span(handler.options, handler.option_count),
                            [](const sluice_option* option) { return std::string(option->name); });
  const std::string text = "the handler " + quoted(handler.name) + " has no option " + quoted(name);
  if (const auto near = config::nearest(name, names)) {
    return text + "; did you mean " + quoted(*near) + "?";
  }
  return text + (names.empty() ? "; it has none" : "; it has: " + joined(names));
}

std::string missing_option(const sluice_handler& handler, const sluice_option& declared, std::string_view section) {
  const std::string text = "the handler " + quoted(handler.name) + " needs the option " + quoted(declared.name) + ", " +
                           detail::describe(declared.type) + ": set it in " + std::string(section);
  const bool helps = declared.help != nullptr && *declared.help != '\0';
  return text + (helps ? " (" + std::string(declared.help, strnlen(declared.help, 200)) + ")" : "");
}

}  // namespace

config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const config::JobConfig& job) {
  const config::Place place = job.handler_place.file.empty() ? config::Place{job.file, 0, 0} : job.handler_place;
  return bind_options(handler, {job.options, place, "[job.options]"});
}

config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const OptionsOf& given) {
  std::vector<config::ConfigError> errors;
  const auto complain = [&](detail::OptionProblem problem, const std::string& name, const sluice_option* declared) {
    const auto configured = given.options.find(name);
    const config::Place& place = configured == given.options.end() ? given.place : configured->second.place;
    switch (problem) {
      case detail::OptionProblem::unknown:
        errors.push_back({place, unknown_option(handler, name)});
        break;
      case detail::OptionProblem::missing:
        errors.push_back({place, missing_option(handler, *declared, given.section)});
        break;
      case detail::OptionProblem::wrong_type:
        errors.push_back({place, "the option " + quoted(name) + " of the handler " + quoted(handler.name) +
                                     " must be " + detail::describe(declared->type)});
        break;
      case detail::OptionProblem::wrong_default:
        errors.push_back({place, "the handler " + quoted(handler.name) + " declares the default " +
                                     quoted(declared->default_value) + " for its option " + quoted(name) +
                                     ", which must be " + detail::describe(declared->type) +
                                     ": a defect of the plugin; until it is mended, set the option"});
        break;
    }
  };
  OptionValues values = detail::bind_options(
      handler, given.options, [](const config::Option& option) { return option.value; }, complain);
  if (!errors.empty()) {
    return errors;
  }
  return values;
}

}  // namespace sluice::plugin
