#include "tests/support/dynamodb_model/arguments.hpp"

#include <algorithm>
#include <utility>

#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/operand_checks.hpp"
#include "tests/support/dynamodb_model/values.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

// Texts without values in them are few; a caller that spells values into its texts must not fill the memory.
constexpr std::size_t kMaxCached = 10'000;

Failure unreadable(std::string message) { return {"SerializationException", std::move(message), 400, ""}; }

std::string lower_first(std::string_view name) {
  std::string out(name);
  out.front() = static_cast<char>(out.front() | 0x20);
  return out;
}

template <typename Map, typename Parse>
auto cached(Map& map, const std::string& key, Parse parse) {
  if (const auto found = map.find(key); found != map.end()) {
    return found->second;
  }
  if (map.size() > kMaxCached) {
    map.clear();
  }
  using Value = std::remove_const_t<typename Map::mapped_type::element_type>;
  return map.emplace(key, std::make_shared<Value>(parse())).first->second;
}

template <typename Ptr>
bool names_it(const Ptr& parsed, const std::string& placeholder, std::set<std::string, std::less<>> Used::*kind) {
  return parsed && (parsed->used.*kind).count(placeholder) > 0;
}

}  // namespace

Arguments::Arguments(const json::value& value, std::initializer_list<std::string_view> known) {
  if (!value.is_object()) {
    throw unreadable("Unexpected value type in payload");
  }
  object_ = &value.get_object();
  for (const auto& member : *object_) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw validation("the model of DynamoDB does not know the member " + std::string(name));
    }
  }
}

const json::value* Arguments::find(std::string_view name) const {
  const json::value* found = object_->if_contains(json::string_view(name.data(), name.size()));
  return found == nullptr || found->is_null() ? nullptr : found;
}

const json::value& Arguments::required(std::string_view name) const {
  const json::value* found = find(name);
  if (found == nullptr) {
    throw validation("1 validation error detected: Value null at '" + lower_first(name) +
                     "' failed to satisfy constraint: Member must not be null");
  }
  return *found;
}

std::string Arguments::required_text(std::string_view name) const {
  required(name);
  return text(name);
}

std::string Arguments::text(std::string_view name, std::string_view otherwise) const {
  const json::value* found = find(name);
  if (found == nullptr) {
    return std::string(otherwise);
  }
  if (!found->is_string()) {
    throw unreadable("class java.lang.Object can not be converted to an String");
  }
  return {found->get_string().data(), found->get_string().size()};
}

bool Arguments::flag(std::string_view name) const {
  const json::value* found = find(name);
  if (found != nullptr && !found->is_bool()) {
    throw unreadable("Unexpected token received from parser");
  }
  return found != nullptr && found->get_bool();
}

std::optional<long long> Arguments::integer(std::string_view name) const {
  const json::value* found = find(name);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_int64()) {
    throw unreadable("Unexpected token received from parser");
  }
  return found->get_int64();
}

Item Arguments::required_item(std::string_view name) const { return read_item(required(name)); }

std::optional<Item> Arguments::item(std::string_view name) const {
  const json::value* found = find(name);
  return found == nullptr ? std::nullopt : std::optional(read_item(*found));
}

const json::array& Arguments::required_array(std::string_view name) const {
  const json::value& found = required(name);
  if (!found.is_array()) {
    throw unreadable("Unexpected field type");
  }
  return found.get_array();
}

const json::object& Arguments::required_object(std::string_view name) const {
  const json::value& found = required(name);
  if (!found.is_object()) {
    throw unreadable("Unexpected field type");
  }
  return found.get_object();
}

ExpressionCache::Ptr<Condition> ExpressionCache::condition(const std::string& text, std::string_view language) {
  return cached(conditions_, std::string(language) + ' ' + text, [&] { return parse_condition(text, language); });
}

ExpressionCache::Ptr<Update> ExpressionCache::update(const std::string& text) {
  return cached(updates_, text, [&] { return parse_update(text); });
}

ExpressionCache::Ptr<std::vector<Path>> ExpressionCache::projection(const std::string& text) {
  return cached(projections_, text, [&] { return parse_projection(text); });
}

std::shared_ptr<const PartiqlStatement> ExpressionCache::statement(const std::string& text) {
  return cached(statements_, text, [&] { return parse_statement(text); });
}

Expressions::Expressions(const Arguments& arguments, ExpressionCache& cache) {
  read_placeholders(arguments);
  const auto parse = [&](std::string_view member, auto& into, auto&& parser) {
    if (arguments.has(member)) {
      into = parser(arguments.text(member));
      check_defined(into->used, member);
    }
  };
  const auto condition_of = [&](std::string_view language) {
    return [&cache, language](const std::string& text) { return cache.condition(text, language); };
  };
  parse("UpdateExpression", update_, [&](const std::string& text) { return cache.update(text); });
  parse("ConditionExpression", condition_, condition_of("ConditionExpression"));
  parse("FilterExpression", filter_, condition_of("FilterExpression"));
  parse("ProjectionExpression", projection_, [&](const std::string& text) { return cache.projection(text); });
  parse("KeyConditionExpression", key_condition_, condition_of("KeyConditionExpression"));
  check_used();
  const auto check = [&](const auto& parsed, std::string_view language) {
    if (parsed) {
      check_operands(parsed->tree, language, bindings());
    }
  };
  check(condition_, "ConditionExpression");
  check(filter_, "FilterExpression");
  if (update_) {
    check_operands(update_->tree, bindings());
    check_overlaps(update_->tree, bindings());
  }
}

void Expressions::read_placeholders(const Arguments& arguments) {
  const bool any = arguments.has("UpdateExpression") || arguments.has("ConditionExpression") ||
                   arguments.has("FilterExpression") || arguments.has("ProjectionExpression") ||
                   arguments.has("KeyConditionExpression");
  for (const char* member : {"ExpressionAttributeNames", "ExpressionAttributeValues"}) {
    if (arguments.has(member) && !any) {
      throw validation(std::string(member) + " can only be specified when using expressions");
    }
    if (arguments.has(member) && arguments.required_object(member).empty()) {
      throw validation(std::string(member) + " must not be empty");
    }
  }
  if (arguments.has("ExpressionAttributeNames")) {
    for (const auto& [placeholder, name] : arguments.required_object("ExpressionAttributeNames")) {
      if (!name.is_string()) {
        throw unreadable("Unexpected value type in payload");
      }
      names_.emplace(std::string(placeholder.data(), placeholder.size()),
                     std::string(name.get_string().data(), name.get_string().size()));
    }
  }
  values_ = arguments.item("ExpressionAttributeValues").value_or(Item{});
}

void Expressions::check_defined(const Used& used, std::string_view language) const {
  for (const std::string& name : used.names) {
    if (names_.count(name) == 0) {
      throw validation(
          "Invalid " + std::string(language) +
          ": An expression attribute name used in the document path is not defined; attribute name: " + name);
    }
  }
  for (const std::string& value : used.values) {
    if (values_.count(value) == 0) {
      throw validation("Invalid " + std::string(language) +
                       ": An expression attribute value used in expression is not defined; attribute value: " + value);
    }
  }
}

void Expressions::check_used() const {
  const auto is_used = [&](const std::string& placeholder, auto kind) {
    return names_it(update_, placeholder, kind) || names_it(condition_, placeholder, kind) ||
           names_it(filter_, placeholder, kind) || names_it(projection_, placeholder, kind) ||
           names_it(key_condition_, placeholder, kind);
  };
  const auto check = [&](const auto& defined, const char* member, auto kind) {
    std::string unused;
    for (const auto& entry : defined) {
      if (!is_used(entry.first, kind)) {
        unused += (unused.empty() ? "" : ", ") + entry.first;
      }
    }
    if (!unused.empty()) {
      throw validation("Value provided in " + std::string(member) + " unused in expressions: keys: {" + unused + "}");
    }
  };
  check(names_, "ExpressionAttributeNames", &Used::names);
  check(values_, "ExpressionAttributeValues", &Used::values);
}

}  // namespace sluice::test::model
