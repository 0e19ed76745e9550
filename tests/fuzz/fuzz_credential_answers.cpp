// What the services and programs that hand out credentials may answer, from arbitrary bytes: keys, or one line without
// a word of the content.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "dynamo/credentials/sources.hpp"
#include "dynamo/server_time.hpp"

namespace {

namespace dynamo = sluice::dynamo;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check(const dynamo::Result<dynamo::Credentials>& credentials) {
  if (credentials) {
    require(!credentials->access_key_id.empty() && !credentials->secret_access_key.empty());
    return;
  }
  require(credentials.error().kind == dynamo::ErrorKind::no_credentials);
  require(credentials.error().message.find('\n') == std::string::npos && credentials.error().message.size() < 200);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(dynamo::credentials_from_json(text, "", "fuzz"));
  check(dynamo::credentials_from_json(text, "/roleCredentials", "fuzz"));
  check(dynamo::parse_sts_answer(text, "fuzz"));
  require(dynamo::parse_sts_error(text).message.find('\n') == std::string::npos);
  static_cast<void>(dynamo::json_text(text, "/Version"));
  static_cast<void>(dynamo::parse_http_date(text));
  if (const auto words = dynamo::split_command(text)) {
    std::size_t total = 0;
    for (const auto& word : *words) {
      total += word.size();
    }
    require(total <= size);
  }
  return 0;
}
