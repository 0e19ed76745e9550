#pragma once

#include <exception>
#include <optional>
#include <string>

#include "base/text/utf8.hpp"
#include "host/plugin/handler_instance.hpp"

namespace sluice::plugin {

/// Runs plugin code; the text of what it throws, or nothing.
template <typename Body>
std::optional<std::string> thrown_by(Body body) {
  try {
    body();
    return std::nullopt;
  } catch (const std::exception& error) {
    const char* const what = error.what();
    return clean_utf8(what == nullptr ? "" : what, kReasonLimit);
  } catch (...) {
    return "threw something that is not a std::exception";
  }
}

/// What a handler has for this id; null where its struct is not what this host knows, or it has nothing.
template <typename Feature>
const Feature* feature_of(const sluice_handler& handler, const char* id) {
  const void* found = nullptr;
  if (handler.extension != nullptr) {
    static_cast<void>(thrown_by([&] { found = handler.extension(id); }));
  }
  const auto* feature = static_cast<const Feature*>(found);
  return feature != nullptr && feature->struct_size >= sizeof(Feature) ? feature : nullptr;
}

}  // namespace sluice::plugin
