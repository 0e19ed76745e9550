#include "config/idempotency_section.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace sluice::config {

namespace {

constexpr std::array<Choice<WhileRunning>, 2> kWhileRunning{
    {{"wait", WhileRunning::wait}, {"reject", WhileRunning::reject}}};
constexpr std::array<Choice<OnDuplicate>, 2> kOnDuplicate{{{"skip", OnDuplicate::skip}, {"run", OnDuplicate::run}}};
constexpr std::array<Choice<OnMissingKey>, 2> kOnMissing{
    {{"reject", OnMissingKey::reject}, {"run", OnMissingKey::run}}};

constexpr std::string_view kMessage = "message";
constexpr std::string_view kAttribute = "attribute:";
constexpr std::string_view kBody = "body:";
constexpr Duration kLongestTtl = std::chrono::hours(24 * 365);

/// As RFC 6901 has it: nothing, or parts that each begin with "/", where "~" is followed by 0 or 1.
bool is_json_pointer(std::string_view text) {
  if (!text.empty() && text.front() != '/') {
    return false;
  }
  for (std::size_t at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1)) {
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) {
      return false;
    }
  }
  return true;
}

const char* key_complaint(const std::string& text) {
  const bool attribute = text.starts_with(kAttribute) && text.size() > kAttribute.size();
  const bool body = text.starts_with(kBody) && is_json_pointer(std::string_view(text).substr(kBody.size()));
  return text == kMessage || attribute || body
             ? nullptr
             : "\"message\", \"attribute:NAME\" or \"body:\" and a JSON pointer, such as \"body:/order/id\"";
}

}  // namespace

void read_idempotency(Section idempotency, JobConfig& config) {
  if (!idempotency.present()) {
    return;
  }
  IdempotencyConfig read;
  if (idempotency.require("key", "say what tells messages apart, as in key = \"message\"") != nullptr) {
    std::string key(kMessage);
    idempotency.read("key", key, key_complaint);
    if (key.starts_with(kAttribute)) {
      read.kind = IdempotencyConfig::Kind::attribute;
      read.path = key.substr(kAttribute.size());
    } else if (key.starts_with(kBody)) {
      read.kind = IdempotencyConfig::Kind::body;
      read.path = key.substr(kBody.size());
    }
  }
  idempotency.read("ttl", read.ttl, {std::chrono::seconds(1), kLongestTtl});
  idempotency.read("while_running", read.while_running, kWhileRunning);
  idempotency.read("on_duplicate", read.on_duplicate, kOnDuplicate);
  idempotency.read("on_missing", read.on_missing, kOnMissing);
  config.idempotency = std::move(read);
}

}  // namespace sluice::config
