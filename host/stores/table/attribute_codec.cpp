#include "host/stores/table/attribute_codec.hpp"

#include <string>

#include "base/text/utf8.hpp"

namespace sluice::queue::table {

Result<dynamo::Map> encode_attributes(const Attributes& attributes) {
  dynamo::Map map;
  for (const auto& [name, value] : attributes) {
    if (!is_utf8(name) || !is_utf8(value)) {
      return Error(ErrorCode::invalid,
                   "attribute '" + clean_utf8(name, 80, "?") + "' is not UTF-8; encode it, for example as base64");
    }
    map.emplace(name, value);
  }
  return map;
}

Attributes decode_attributes(const dynamo::AttributeValue* value) {
  Attributes attributes;
  const auto* map = value == nullptr ? nullptr : value->get<dynamo::Map>();
  if (map == nullptr) {
    return attributes;
  }
  for (const auto& [name, one] : *map) {
    if (const auto* text = one.get<std::string>()) {
      attributes.emplace(name, *text);
    }
  }
  return attributes;
}

}  // namespace sluice::queue::table
