#include "host/observe/log_encoder.hpp"

#include "host/observe/escape.hpp"
#include "host/observe/log_format.hpp"

namespace sluice::observe {

namespace {

/// A message's id is often a customer's or an order's number.
constexpr std::string_view kMessageId = "id";

}  // namespace

void append_public_fields(std::string& out, std::span<const LogField> fields, bool pii) {
  for (const LogField& field : fields) {
    if (pii || field.name() != kMessageId) {
      append_fields(out, {&field, 1});
    }
  }
}

void append_texts(std::string& out, const std::map<std::string, std::string>& texts) {
  const char* separator = "";
  for (const auto& [name, value] : texts) {
    out += separator;
    append_json_string(out, name);
    out += ':';
    append_json_string(out, value);
    separator = ",";
  }
}

}  // namespace sluice::observe
