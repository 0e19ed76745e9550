#include "host/plugin/plugin_check.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace sluice::plugin {

namespace {

using Refusal = std::optional<std::string>;

// The sizes in version 1.0, below which no struct of this major version can be.
constexpr std::size_t kPluginSize = offsetof(sluice_plugin, handler_count) + sizeof(std::size_t);
constexpr std::size_t kHandlerSize = offsetof(sluice_handler, extension) + sizeof(void*);
constexpr std::size_t kOptionSize = offsetof(sluice_option, help) + sizeof(void*);
// What every major version has in common: enough to tell which one it is.
constexpr std::size_t kPrefixSize = offsetof(sluice_plugin, abi_minor) + sizeof(std::uint32_t);

std::string version_text(std::uint32_t major, std::uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string quoted(const char* text) { return "\"" + std::string(text, strnlen(text, kNameLimit)) + "\""; }

bool is_word(const char* text, std::string_view besides) {
  if (text == nullptr) {
    return false;
  }
  const std::size_t size = strnlen(text, kNameLimit + 1);
  return size > 0 && size <= kNameLimit && std::all_of(text, text + size, [besides](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  besides.find(c) != std::string_view::npos;
         });
}

std::string bad_size(std::string_view what, std::size_t has, std::size_t needs) {
  return "has a " + std::string(what) + " of " + std::to_string(has) + " bytes, and in ABI 1.0 it has " +
         std::to_string(needs) + ": rebuild it with the SDK";
}

Refusal refuse_version(const sluice_plugin& plugin) {
  const std::string mine = version_text(SLUICE_ABI_MAJOR, SLUICE_ABI_MINOR);
  const std::string built = "is built for plugin ABI " + version_text(plugin.abi_major, plugin.abi_minor);
  if (plugin.abi_major != SLUICE_ABI_MAJOR) {
    return built + ", and this host runs ABI " + mine + ": " +
           (plugin.abi_major > SLUICE_ABI_MAJOR ? "update the host, or rebuild the plugin with sluice-sdk "
                                                : "rebuild the plugin with sluice-sdk ") +
           std::to_string(SLUICE_ABI_MAJOR);
  }
  if (plugin.abi_minor > SLUICE_ABI_MINOR) {
    return built + ", and this host knows it up to " + mine +
           ": update the host, or rebuild the plugin with sluice-sdk " + mine;
  }
  return std::nullopt;
}

Refusal refuse_option(const sluice_option* option, const std::string& owner) {
  if (option == nullptr) {
    return owner + " declares an option that is NULL: a defect of the plugin";
  }
  if (option->struct_size < kOptionSize) {
    return bad_size("sluice_option", option->struct_size, kOptionSize);
  }
  if (!is_word(option->name, "-_")) {
    return owner + " declares an option whose name is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits, '-' or '_': a defect of the plugin";
  }
  if (option->type < SLUICE_OPTION_STRING || option->type > SLUICE_OPTION_MAP) {
    return owner + " declares the option " + quoted(option->name) + " with the unknown type " +
           std::to_string(option->type) + ": a defect of the plugin";
  }
  return std::nullopt;
}

Refusal refuse_options(const sluice_handler& handler, const std::string& owner) {
  if (handler.option_count > kOptionLimit || (handler.options == nullptr && handler.option_count > 0)) {
    return owner + " declares " + std::to_string(handler.option_count) + " options, and at most " +
           std::to_string(kOptionLimit) + " in a list that is not NULL can be: a defect of the plugin";
  }
  for (std::size_t i = 0; i < handler.option_count; ++i) {
    if (Refusal refusal = refuse_option(handler.options[i], owner)) {
      return refusal;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (std::strcmp(handler.options[i]->name, handler.options[j]->name) == 0) {
        return owner + " declares the option " + quoted(handler.options[i]->name) + " twice: a defect of the plugin";
      }
    }
  }
  return std::nullopt;
}

Refusal refuse_handler(const sluice_handler* handler) {
  if (handler == nullptr) {
    return "has a handler that is NULL: a defect of the plugin";
  }
  if (handler->struct_size < kHandlerSize) {
    return bad_size("sluice_handler", handler->struct_size, kHandlerSize);
  }
  if (!is_word(handler->name, "-_.")) {
    return "has a handler whose name is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits, '-', '_' or '.': a defect of the plugin";
  }
  const std::string owner = "has a handler " + quoted(handler->name) + " that";
  if (handler->create == nullptr || handler->destroy == nullptr || handler->handle == nullptr) {
    const char* missing = handler->create == nullptr ? "create" : handler->destroy == nullptr ? "destroy" : "handle";
    return owner + " has no function `" + missing + "`: a defect of the plugin";
  }
  if (handler->help != nullptr && strnlen(handler->help, kHelpLimit + 1) > kHelpLimit) {
    return owner + " has a help text of more than " + std::to_string(kHelpLimit) + " bytes: a defect of the plugin";
  }
  return refuse_options(*handler, owner);
}

Refusal refuse_handlers(const sluice_plugin& plugin) {
  if (plugin.handler_count == 0 || plugin.handlers == nullptr) {
    return "has no handlers: name them in SLUICE_PLUGIN";
  }
  if (plugin.handler_count > kHandlerLimit) {
    return "has " + std::to_string(plugin.handler_count) + " handlers, and at most " + std::to_string(kHandlerLimit) +
           " can be in one plugin: split it";
  }
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    if (Refusal refusal = refuse_handler(plugin.handlers[i])) {
      return refusal;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (std::strcmp(plugin.handlers[i]->name, plugin.handlers[j]->name) == 0) {
        return "has two handlers named " + quoted(plugin.handlers[i]->name) + ": give each a name of its own";
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Refusal refuse_plugin(const sluice_plugin& plugin, std::size_t symbol_size) {
  if (symbol_size != 0 && symbol_size < kPrefixSize) {
    return bad_size("symbol " SLUICE_PLUGIN_SYMBOL, symbol_size, kPluginSize);
  }
  if (plugin.magic != SLUICE_PLUGIN_MAGIC) {
    return "has a symbol " SLUICE_PLUGIN_SYMBOL
           " that does not begin as a Sluice plugin does: rebuild it with the SDK, "
           "or move it out of the plugin folder";
  }
  if (Refusal refusal = refuse_version(plugin)) {
    return refusal;
  }
  const std::size_t size =
      symbol_size == 0 ? plugin.struct_size : std::min<std::size_t>(plugin.struct_size, symbol_size);
  if (size < kPluginSize) {
    return bad_size("sluice_plugin", size, kPluginSize);
  }
  if (!is_word(plugin.name, "-_.")) {
    return "has a name that is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits, '-', '_' or '.': correct it in "
           "SLUICE_PLUGIN";
  }
  if (!is_word(plugin.version, "-_.+~:")) {
    return "has a version that is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits or one of \"-_.+~:\": correct "
           "it in SLUICE_PLUGIN";
  }
  return refuse_handlers(plugin);
}

}  // namespace sluice::plugin
