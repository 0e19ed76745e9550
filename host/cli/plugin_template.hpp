#pragma once

#include <span>
#include <string_view>

namespace sluice::cli {

/// A file of sdk/template as it lies there, its name and text with `my_plugin` for the plugin's name and `MyPlugin` for
/// its class.
struct TemplateFile {
  std::string_view part;  ///< the folder of sdk/template that it is in, such as "plain"
  std::string_view path;  ///< below that folder, and so in a project
  std::string_view text;
};

/// All of them. The build makes this function's source.
std::span<const TemplateFile> plugin_template();

}  // namespace sluice::cli
