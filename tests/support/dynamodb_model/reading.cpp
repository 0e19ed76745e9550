#include "tests/support/dynamodb_model/reading.hpp"

#include <algorithm>
#include <utility>

#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

constexpr std::size_t kPageBytes = 1u << 20;

// The first position behind everything that has this position as its start.
Position behind(Position position, bool whole_partition) {
  (whole_partition ? position.hash : position.range).push_back('\0');
  return position;
}

Position start_position(const Selection& selection) {
  const KeySchema& schema = selection.schema();
  const KeySchema& table = selection.table->schema;
  Item key = key_of(schema, selection.start);
  key.merge(key_of(table, selection.start));
  std::size_t wanted = key.size();
  for (const auto* part : {&schema, &table}) {
    const auto missing = [&](const KeyAttribute& attribute) {
      const auto found = selection.start.find(attribute.name);
      return found == selection.start.end() || type_of(found->second) != attribute.type;
    };
    if (missing(part->hash) || (part->range && missing(*part->range))) {
      wanted = selection.start.size() + 1;
    }
  }
  if (wanted != selection.start.size()) {
    throw validation("The provided starting key is invalid");
  }
  Position position = position_of(schema, selection.start);
  if (!selection.index.empty()) {
    position.tail = tail_of(position_of(table, selection.start));
  }
  if (selection.hash && position.hash != sort_bytes(*selection.hash)) {
    throw validation("The provided starting key is outside query boundaries based on provided conditions");
  }
  return position;
}

// Walks positions of one selection, in its direction.
class Walk {
 public:
  Walk(const Records& records, const Selection& selection) : forward_(selection.forward) {
    begin_ = records.begin();
    end_ = records.end();
    if (selection.hash) {
      Position partition = start_of(*selection.hash);
      Position low = partition;
      low.range = selection.range.prefix.empty() ? selection.range.low.value_or("") : selection.range.prefix;
      begin_ = records.lower_bound(low);
      Position high = partition;
      high.range = selection.range.high.value_or("");
      end_ = records.lower_bound(selection.range.high ? behind(high, false) : behind(partition, true));
    }
    if (!selection.start.empty()) {
      const Position start = start_position(selection);
      const auto at = forward_ ? records.upper_bound(start) : records.lower_bound(start);
      auto& edge = forward_ ? begin_ : end_;
      const bool inside = forward_ ? (begin_ == records.end() || at == records.end() || begin_->first < at->first)
                                   : (end_ == records.end() || (at != records.end() && at->first < end_->first));
      edge = inside ? at : edge;
    }
    if (begin_ != records.end() && end_ != records.end() && end_->first < begin_->first) {
      end_ = begin_;
    } else if (begin_ == records.end()) {
      end_ = begin_;
    }
  }
  bool done() const { return begin_ == end_; }
  const Records::value_type& next() { return forward_ ? *begin_++ : *--end_; }

 private:
  bool forward_;
  Records::const_iterator begin_;
  Records::const_iterator end_;
};

bool names_attribute(const Operand& operand, const Bindings& bindings, const std::string& name) {
  return operand.kind == Operand::Kind::path && operand.path.size() == 1 &&
         bindings.name_of(operand.path.front()) == name;
}

Failure not_supported() { return validation("Query key condition not supported"); }

struct KeyConditionReader {
  const Bindings& bindings;
  Selection& selection;
  bool has_range = false;

  // Whether it compares the key with values of its type, so that it can be read.
  bool bounds(const Condition& condition, const KeyAttribute& key, bool equality) const {
    static const Item kNothing;
    const bool compares =
        condition.kind == Condition::Kind::equal ||
        (!equality && condition.kind >= Condition::Kind::less && condition.kind <= Condition::Kind::between) ||
        (!equality && condition.kind == Condition::Kind::begins_with);
    if (!compares || !names_attribute(condition.operands.front(), bindings, key.name)) {
      return false;
    }
    return std::all_of(condition.operands.begin() + 1, condition.operands.end(), [&](const Operand& operand) {
      const AttributeValue* found = Evaluator(kNothing, bindings)(operand);
      return found != nullptr && type_of(*found) == key.type;
    });
  }

  const AttributeValue& value(const Operand& operand, const KeyAttribute& key) const {
    static const Item kNothing;
    const AttributeValue* found = Evaluator(kNothing, bindings)(operand);
    if (found == nullptr) {
      throw not_supported();
    }
    if (type_of(*found) != key.type) {
      throw invalid_values("Condition parameter type does not match schema type");
    }
    return *found;
  }

  void read(const Condition& condition) {
    if (condition.kind == Condition::Kind::all) {
      for (const Condition& child : condition.children) {
        read(child);
      }
      return;
    }
    const KeySchema& schema = selection.schema();
    if (condition.operands.empty()) {
      throw validation("Invalid operator used in KeyConditionExpression: " +
                       std::string(condition.kind == Condition::Kind::any ? "OR" : "NOT"));
    }
    const Operand& left = condition.operands.front();
    if (names_attribute(left, bindings, schema.hash.name)) {
      if (condition.kind != Condition::Kind::equal) {
        throw not_supported();
      }
      selection.hash = value(condition.operands[1], schema.hash);
    } else if (schema.range && names_attribute(left, bindings, schema.range->name)) {
      read_range(condition, *schema.range);
    } else if (left.kind == Operand::Kind::path) {
      throw validation("Query condition missed key schema element: " + schema.hash.name);
    } else {
      throw not_supported();
    }
  }

  void read_range(const Condition& condition, const KeyAttribute& key) {
    if (std::exchange(has_range, true)) {
      throw validation("KeyConditionExpressions must only contain one condition per key");
    }
    const auto bytes = [&](std::size_t i) { return sort_bytes(value(condition.operands[i], key)); };
    KeyRange& range = selection.range;
    switch (condition.kind) {
      case Condition::Kind::equal:
        range.low = range.high = bytes(1);
        return;
      case Condition::Kind::less:
      case Condition::Kind::at_most:
        range.high = bytes(1);
        range.high_included = condition.kind == Condition::Kind::at_most;
        return;
      case Condition::Kind::greater:
      case Condition::Kind::at_least:
        range.low = bytes(1);
        range.low_included = condition.kind == Condition::Kind::at_least;
        return;
      case Condition::Kind::between:
        range.low = bytes(1);
        range.high = bytes(2);
        if (*range.high < *range.low) {
          throw validation(
              "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal "
              "to "
              "lower bound; lower bound operand: AttributeValue, upper bound operand: AttributeValue");
        }
        return;
      case Condition::Kind::begins_with:
        range.prefix = bytes(1);
        return;
      default:
        throw not_supported();
    }
  }
};

}  // namespace

bool KeyRange::below(const std::string& range) const { return low && !low_included && range == *low; }

bool KeyRange::above(const std::string& range) const {
  if (!prefix.empty()) {
    return range.compare(0, prefix.size(), prefix) != 0;
  }
  return high && !high_included && range == *high;
}

const KeySchema& Selection::schema() const { return index.empty() ? table->schema : table->index(index).schema(); }

void read_key_condition(const Condition& condition, const Bindings& bindings, Selection& selection) {
  KeyConditionReader{bindings, selection}.read(condition);
  if (!selection.hash) {
    throw validation("Query condition missed key schema element: " + selection.schema().hash.name);
  }
}

void narrow(const Condition& condition, const Bindings& bindings, Selection& selection) {
  if (condition.kind == Condition::Kind::all) {
    for (const Condition& child : condition.children) {
      narrow(child, bindings, selection);
    }
    return;
  }
  KeyConditionReader reader{bindings, selection};
  const KeySchema& schema = selection.schema();
  if (!selection.hash && reader.bounds(condition, schema.hash, true)) {
    reader.read(condition);
  }
  const bool bounded = selection.range.low || selection.range.high || !selection.range.prefix.empty();
  if (schema.range && !bounded && reader.bounds(condition, *schema.range, false)) {
    reader.read(condition);
  }
}

SelectedPage read_page(Context& context, const Selection& selection) {
  if (selection.limit && *selection.limit < 1) {
    throw validation("1 validation error detected: Value '" + std::to_string(*selection.limit) +
                     "' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1");
  }
  if (selection.consistent && !selection.index.empty()) {
    throw validation("Consistent reads are not supported on global secondary indexes");
  }
  Table& table = *selection.table;
  Database& database = context.database;
  const Records& records = selection.index.empty() ? table.records : database.entries(table, selection.index);
  Walk walk(records, selection);
  // Partitions are scanned one after the other, so that a scan is bound by what one of them gives.
  const std::string hash = selection.hash ? sort_bytes(*selection.hash) : "(scan)";
  database.throughput().admit(Throughput::Use::read, table.name, selection.index, hash, database.now());
  SelectedPage page;
  std::size_t bytes = 0;
  while (!walk.done()) {
    const auto& [position, record] = walk.next();
    if (selection.range.above(position.range) && selection.forward) {
      break;
    }
    if (selection.range.below(position.range) || selection.range.above(position.range)) {
      continue;
    }
    ++page.scanned;
    bytes += record->bytes;
    if (!selection.passes || selection.passes(record->item)) {
      page.records.push_back(record);
    }
    if (bytes >= kPageBytes || (selection.limit && page.scanned >= *selection.limit)) {
      page.last_key = key_of(selection.schema(), record->item);
      page.last_key.merge(key_of(table.schema, record->item));
      break;
    }
  }
  charge_read(context, table, selection.index, hash, bytes, selection.consistent ? 1 : 0.5);
  return page;
}

}  // namespace sluice::test::model
