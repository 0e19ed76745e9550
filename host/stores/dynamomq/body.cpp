#include "host/stores/dynamomq/body.hpp"

#include "base/text/utf8.hpp"
#include "dynamo/codec/plain_json.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue::dynamomq {
namespace {

Result<StoredBody> store_json(std::string_view json) {
  auto value = dynamo::from_plain_json(json);
  if (!value) {
    return Error(ErrorCode::invalid, "the body is not JSON that DynamoDB can hold: " + value.error().message +
                                         "; mend it, or send it as text/plain");
  }
  // A JSON text that is one string is stored as that string, which is what a Go reader expects; the kept content type
  // tells it from plain text.
  const bool is_string = value->is<std::string>();
  return StoredBody{std::move(*value), is_string ? std::string(kJson) : std::string()};
}

}  // namespace

Result<StoredBody> store_body(std::string_view bytes, std::string_view content_type) {
  if (content_type.empty()) {
    content_type = kTextPlain;
  }
  if (content_type == kJson) {
    return store_json(bytes);
  }
  if (content_type == kOctetStream) {
    return StoredBody{dynamo::Binary{std::string(bytes)}, {}};
  }
  const bool text = is_utf8(bytes);
  StoredBody stored;
  stored.data = text ? dynamo::AttributeValue(std::string(bytes)) : dynamo::Binary{std::string(bytes)};
  if (content_type != kTextPlain || !text) {
    stored.content_type = content_type;
  }
  return stored;
}

Body read_body(const dynamo::AttributeValue* data, std::string_view content_type) {
  const auto kept = [&](std::string_view implied) {
    return std::string(content_type.empty() ? implied : content_type);
  };
  if (data == nullptr) {
    return {"null", std::string(kJson)};
  }
  if (const auto* text = data->get<std::string>(); text != nullptr && content_type != kJson) {
    return {*text, kept(kTextPlain)};
  }
  if (const auto* binary = data->get<dynamo::Binary>()) {
    return {binary->bytes, kept(kOctetStream)};
  }
  return {dynamo::to_plain_json(*data), std::string(kJson)};
}

}  // namespace sluice::queue::dynamomq
