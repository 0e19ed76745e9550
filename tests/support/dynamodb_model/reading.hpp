#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/dynamodb_model/operations.hpp"

namespace sluice::test::model {

/// Bounds of sort keys, as bytes.
struct KeyRange {
  std::optional<std::string> low;
  bool low_included = true;
  std::optional<std::string> high;
  bool high_included = true;
  std::string prefix;  ///< when not empty, the low bound too

  bool below(const std::string& range) const;  ///< lies before the bounds
  bool above(const std::string& range) const;
};

/// What a Query, a Scan or a SELECT reads.
struct Selection {
  Table* table = nullptr;
  std::string index;                   ///< empty: the table
  std::optional<AttributeValue> hash;  ///< of the one partition; nothing: all of them
  KeyRange range;
  bool forward = true;
  bool consistent = false;
  std::optional<long long> limit;
  Item start;                               ///< ExclusiveStartKey; empty: from the beginning
  std::function<bool(const Item&)> passes;  ///< the filter; empty: all pass

  const KeySchema& schema() const;
};

struct SelectedPage {
  std::vector<RecordPtr> records;
  long long scanned = 0;
  Item last_key;  ///< empty: the end
};

/// Reads a page and charges for it. Throws Failures.
SelectedPage read_page(Context& context, const Selection& selection);

/// Takes from a condition what bounds the keys to be read; the condition still has to filter what is read. For the
/// WHERE of a SELECT.
void narrow(const Condition& condition, const Bindings& bindings, Selection& selection);

/// Takes a key condition apart; throws for what is no key condition.
void read_key_condition(const Condition& condition, const Bindings& bindings, Selection& selection);

}  // namespace sluice::test::model
