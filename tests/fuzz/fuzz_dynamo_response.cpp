// Answers of a server: the first byte is taken for the HTTP status, the rest is a body for every decoder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dynamo/codec/responses.hpp"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

template <typename Output>
void require_fine(const sluice::dynamo::Result<Output>& result) {
  require(result.has_value() ||
          (result.error().kind == sluice::dynamo::ErrorKind::malformed_response && result.error().outcome_unknown));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace dynamo = sluice::dynamo;
  const int status = size > 0 ? 300 + data[0] : 500;
  const std::string_view body(reinterpret_cast<const char*>(data) + (size > 0 ? 1 : 0), size > 0 ? size - 1 : 0);
  require_fine(dynamo::decode_page(body));
  require_fine(dynamo::decode_item_output(body, dynamo::Usage::write));
  require_fine(dynamo::decode_batch_execute(body, 3));
  require_fine(dynamo::decode_batch_get(body));
  require_fine(dynamo::decode_table(body));
  const dynamo::Headers headers{{"x-amzn-requestid", std::string(body.substr(0, 40))},
                                {"x-amz-retry-after", std::string(body.substr(0, 6))},
                                {"x-amz-crc32", std::string(body.substr(0, 10))}};
  const dynamo::Error error = dynamo::decode_error(status, headers, body);
  require(!error.message.empty() && error.message.size() <= dynamo::kMaxErrorText);
  require(error.message.find_first_of("\r\n") == std::string::npos);
  require(error.retry_after_ms >= -1);
  static_cast<void>(dynamo::check_crc32(headers, body));
  return 0;
}
