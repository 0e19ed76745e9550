// Items and plain JSON: whatever is accepted must survive a round trip unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dynamo/codec/json_codec.hpp"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace dynamo = sluice::dynamo;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto item = dynamo::decode_item(text)) {
    const auto again = dynamo::decode_item(dynamo::encode_item(*item));
    require(again.has_value() && *again == *item);
    for (const auto& [name, value] : *item) {
      const std::string plain = dynamo::to_plain_json(value);
      const auto read = dynamo::from_plain_json(plain);
      // Only what is beyond DynamoDB's own limits, which a decoder does not enforce, may be refused.
      require(read.has_value() || read.error().message.find("DynamoDB") != std::string::npos);
    }
  } else {
    require(!item.error().message.empty());
  }
  if (const auto value = dynamo::from_plain_json(text)) {
    const std::string plain = dynamo::to_plain_json(*value);
    const auto again = dynamo::from_plain_json(plain);
    require(again.has_value() && *again == *value);
    const dynamo::Item wrapped{{"a", *value}};
    const auto decoded = dynamo::decode_item(dynamo::encode_item(wrapped));
    require(decoded.has_value() && *decoded == wrapped);
  } else {
    require(value.error().message.find('\n') == std::string::npos);
  }
  return 0;
}
