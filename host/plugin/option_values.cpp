#include <cstring>

#include "base/text/joined.hpp"
#include "host/plugin/handler_instance.hpp"
#include "sluice/options.hpp"

namespace sluice::plugin {
namespace {

using config::ConfigError;

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// Binds the options of one job, and gathers everything that is wrong with them.
class Binder {
 public:
  Binder(const sluice_handler& handler, const OptionsOf& given) : handler_(handler), given_(given) {}

  config::Parsed<OptionValues> bind() {
    if ((handler_.flags & SLUICE_HANDLER_OPEN_OPTIONS) != 0) {
      for (const auto& [name, option] : given_.options) {
        values_.push_back(detail::plain_option(name, option.value));
      }
      return std::move(values_);
    }
    for (const auto& [name, option] : given_.options) {
      check_known(name, option.place);
    }
    for (std::size_t i = 0; i < handler_.option_count; ++i) {
      bind_one(*handler_.options[i]);
    }
    if (!errors_.empty()) {
      return std::move(errors_);
    }
    return std::move(values_);
  }

 private:
  void check_known(const std::string& name, const config::Place& place) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < handler_.option_count; ++i) {
      names.emplace_back(handler_.options[i]->name);
      if (names.back() == name) {
        return;
      }
    }
    std::string text = "the handler " + quoted(handler_.name) + " has no option " + quoted(name);
    if (const auto near = config::nearest(name, names)) {
      text += "; did you mean " + quoted(*near) + "?";
    } else if (names.empty()) {
      text += "; it has none";
    } else {
      text += "; it has: " + joined(names);
    }
    errors_.push_back({place, std::move(text)});
  }

  void bind_one(const sluice_option& declared) {
    const std::string name = declared.name;
    if (const auto configured = given_.options.find(name); configured != given_.options.end()) {
      if (auto value = detail::declared_option(declared, configured->second.value)) {
        values_.push_back(*std::move(value));
      } else {
        errors_.push_back({configured->second.place, "the option " + quoted(name) + " of the handler " +
                                                         quoted(handler_.name) + " must be " +
                                                         detail::describe(declared.type)});
      }
    } else if (declared.default_value != nullptr) {
      bind_default(declared);
    } else if ((declared.flags & SLUICE_OPTION_REQUIRED) != 0) {
      std::string text = "the handler " + quoted(handler_.name) + " needs the option " + quoted(name) + ", " +
                         detail::describe(declared.type) + ": set it in " + std::string(given_.section);
      if (declared.help != nullptr && *declared.help != '\0') {
        text += " (" + std::string(declared.help, strnlen(declared.help, 200)) + ")";
      }
      errors_.push_back({given_.place, std::move(text)});
    }
  }

  void bind_default(const sluice_option& declared) {
    if (auto value = detail::text_option(declared, declared.default_value)) {
      values_.push_back(*std::move(value));
      return;
    }
    errors_.push_back({given_.place, "the handler " + quoted(handler_.name) + " declares the default " +
                                         quoted(declared.default_value) + " for its option " + quoted(declared.name) +
                                         ", which must be " + detail::describe(declared.type) +
                                         ": a defect of the plugin; until it is mended, set the option"});
  }

  const sluice_handler& handler_;
  const OptionsOf& given_;
  OptionValues values_;
  std::vector<ConfigError> errors_;
};

}  // namespace

config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const config::JobConfig& job) {
  const config::Place place = job.handler_place.file.empty() ? config::Place{job.file, 0, 0} : job.handler_place;
  return bind_options(handler, {job.options, place, "[job.options]"});
}

config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const OptionsOf& given) {
  return Binder(handler, given).bind();
}

}  // namespace sluice::plugin
