#include "host/operate/filter_fields.hpp"

#include <array>
#include <span>
#include <vector>

#include "base/timestamp.hpp"
#include "config/config.hpp"

namespace sluice::operate {

namespace {

enum class FieldType { text, state, half, number, time, span, whole, any };

struct FieldName {
  std::string_view name;
  FilterField field;
  FieldType type;
};

constexpr std::array kFields{
    FieldName{"id", FilterField::id, FieldType::text},
    FieldName{"receive_count", FilterField::receive_count, FieldType::number},
    FieldName{"queue_type", FilterField::queue_type, FieldType::half},
    FieldName{"version", FilterField::version, FieldType::number},
    FieldName{"state", FilterField::state, FieldType::state},
    FieldName{"age", FilterField::age, FieldType::span},
    FieldName{"created_at", FilterField::created_at, FieldType::time},
    FieldName{"updated_at", FilterField::updated_at, FieldType::time},
    FieldName{"sent_at", FilterField::sent_at, FieldType::time},
    FieldName{"received_at", FilterField::received_at, FieldType::time},
    FieldName{"invisible_until_at", FilterField::invisible_until_at, FieldType::time},
    FieldName{"content_type", FilterField::content_type, FieldType::text},
    FieldName{"group", FilterField::group, FieldType::text},
    FieldName{"priority", FilterField::priority, FieldType::text},
    FieldName{"error", FilterField::failure_error, FieldType::text},
    FieldName{"failure", FilterField::failure, FieldType::whole},
    FieldName{"attributes", FilterField::attributes, FieldType::any},
    FieldName{"data", FilterField::data, FieldType::any},
};

constexpr std::array kFailureFields{
    FieldName{"error", FilterField::failure_error, FieldType::text},
    FieldName{"fingerprint", FilterField::failure_fingerprint, FieldType::text},
    FieldName{"handler", FilterField::failure_handler, FieldType::text},
    FieldName{"host", FilterField::failure_host, FieldType::text},
    FieldName{"attempts", FilterField::failure_attempts, FieldType::number},
    FieldName{"failed_at", FilterField::failure_failed_at, FieldType::time},
};

std::optional<FilterField> find(std::span<const FieldName> fields, std::string_view name) {
  for (const FieldName& field : fields) {
    if (field.name == name) {
      return field.field;
    }
  }
  return std::nullopt;
}

const FieldName& entry(FilterField field) {
  for (const FieldName& known : kFields) {
    if (known.field == field) {
      return known;
    }
  }
  for (const FieldName& known : kFailureFields) {
    if (known.field == field) {
      return known;
    }
  }
  return kFields.back();  // not reached: every field has its entry
}

std::string unknown(std::span<const FieldName> fields, std::string_view name, std::string_view what) {
  std::vector<std::string> names;
  std::string all;
  for (const FieldName& field : fields) {
    names.emplace_back(field.name);
    all += (all.empty() ? "" : ", ") + std::string(field.name);
  }
  const auto meant = config::nearest(std::string(name), names);
  return std::string(what) + " \"" + std::string(name) + "\"; " +
         (meant ? "did you mean " + *meant + "?" : "there are " + all + "; a text stands in quotes");
}

std::optional<WallTime> read_time(const std::string& text) {
  if (const auto time = parse_timestamp(text)) {
    return time;
  }
  return parse_timestamp(text + "T00:00:00Z");
}

std::optional<std::string> fit_word(std::string_view field, const FilterLiteral& literal,
                                    const std::vector<std::string>& words) {
  const auto* text = std::get_if<std::string>(&literal);
  std::string listed;
  for (const std::string& word : words) {
    if (text != nullptr && *text == word) {
      return std::nullopt;
    }
    listed += (listed.empty() ? "\"" : ", \"") + word + "\"";
  }
  const auto meant = text != nullptr ? config::nearest(*text, words) : std::nullopt;
  return std::string(field) + " is one of " + listed + (meant ? "; did you mean \"" + *meant + "\"?" : "");
}

}  // namespace

std::optional<FilterField> find_filter_field(std::string_view name) {
  // DynamoMQ's word for it.
  return find(kFields, name == "status" ? "state" : name);
}

std::optional<FilterField> find_failure_field(std::string_view name) { return find(kFailureFields, name); }

std::string unknown_filter_field(std::string_view name) { return unknown(kFields, name, "unknown field"); }

std::string unknown_failure_field(std::string_view name) {
  return unknown(kFailureFields, name, "a failure has no field");
}

std::optional<std::string> fit_literal(FilterField field, FilterLiteral& literal) {
  const auto& [name, ignored, type] = entry(field);
  const std::string is = std::string(name) + " is ";
  switch (type) {
    case FieldType::text:
      return std::holds_alternative<std::string>(literal) ? std::nullopt
                                                          : std::optional(is + "text; write it in quotes");
    case FieldType::number:
      return std::holds_alternative<FilterNumber>(literal) ? std::nullopt
                                                           : std::optional(is + "a number; write one such as 3");
    case FieldType::span:
      return std::holds_alternative<Duration>(literal) ? std::nullopt
                                                       : std::optional(is + "a duration; write one such as 10m");
    case FieldType::time:
      if (const auto* text = std::get_if<std::string>(&literal)) {
        const auto time = read_time(*text);
        if (time) {
          literal = *time;
        }
      }
      return std::holds_alternative<WallTime>(literal)
                 ? std::nullopt
                 : std::optional(is + "a time; write one such as 2026-01-31T12:00:00Z");
    case FieldType::state:
      return fit_word(name, literal, {"ready", "in_flight", "delayed"});
    case FieldType::half:
      return fit_word(name, literal, {"STANDARD", "DLQ"});
    case FieldType::whole:
      return "a failure as a whole cannot be compared; write failure.error, or exists(failure)";
    case FieldType::any:
      break;
  }
  return std::nullopt;
}

}  // namespace sluice::operate
