#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"

namespace sluice::queue::dynamomq {

/// A message's body as the `data` attribute holds it. DynamoMQ's Go programs know only `data`.
struct StoredBody {
  dynamo::AttributeValue data;
  std::string content_type;  ///< to be kept beside it; empty where the type of `data` implies it
};

/// A body as handlers see it.
struct Body {
  std::string bytes;
  std::string content_type;
};

/// text/plain becomes S (B when it is not UTF-8), application/octet-stream B, application/json the value it stands for;
/// anything else S or B with its content type kept. ErrorCode::invalid for JSON that DynamoDB cannot hold.
Result<StoredBody> store_body(std::string_view bytes, std::string_view content_type);

/// Never fails: S is its bytes (text/plain), B its bytes (application/octet-stream), everything else JSON; absent data
/// is JSON's null. `content_type` is what was kept beside it, or empty.
Body read_body(const dynamo::AttributeValue* data, std::string_view content_type);

}  // namespace sluice::queue::dynamomq
