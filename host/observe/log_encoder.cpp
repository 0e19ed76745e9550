#include "host/observe/log_encoder.hpp"

#include "host/observe/log_format.hpp"

namespace sluice::observe {

namespace {

/// A message's id is often a customer's or an order's number.
constexpr std::string_view kMessageId = "id";

}  // namespace

void write_public_fields(JsonWriter& json, std::span<const LogField> fields, bool pii) {
  for (const LogField& field : fields) {
    if (pii || field.name() != kMessageId) {
      write_fields(json, {&field, 1});
    }
  }
}

}  // namespace sluice::observe
