#include "host/work/message_key.hpp"

#include <optional>
#include <utility>

#include "base/text/json_check.hpp"
#include "base/text/json_pointer.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/signing/digest.hpp"

namespace sluice::work {
namespace {

constexpr std::size_t kShownBytes = 64;

}  // namespace

FoundKey key_in_json(const std::string& json, const std::string& pointer) {
  if (const auto problem = json_problem(json)) {
    return {.missing = "its body is no JSON: " + *problem};
  }
  auto found = json_at(json, pointer);
  if (!found) {
    return {.missing = "its body has nothing at '" + pointer + "'"};
  }
  if (found->kind != JsonReader::Kind::string && found->kind != JsonReader::Kind::number) {
    return {.missing = "what the body has at '" + pointer + "' is neither a string nor a number"};
  }
  return {.key = std::move(found->text)};
}

std::string kept_key(std::string key) {
  if (key.size() <= kLongestKey) {
    return key;
  }
  return std::string(cut_utf8(key, kShownBytes)) + "...sha256:" + dynamo::to_hex(dynamo::sha256(key));
}

FoundKey MessageKey::of(const queue::Message& message) const {
  using Kind = config::IdempotencyConfig::Kind;
  if (config_.kind == Kind::message) {
    return {.key = message.id};
  }
  FoundKey found;
  if (config_.kind == Kind::attribute) {
    const auto attribute = message.attributes.find(config_.path);
    if (attribute == message.attributes.end()) {
      return {.missing = "it has no attribute '" + config_.path + "'"};
    }
    found.key = attribute->second;
  } else {
    found = key_in_json(message.body, config_.path);
  }
  if (found.missing.empty() && found.key.empty()) {
    found.missing = "the key in it is empty";
  }
  found.key = kept_key(std::move(found.key));
  return found;
}

}  // namespace sluice::work
