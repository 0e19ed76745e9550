#include "host/stores/table/version_mark.hpp"

#include <limits>

#include "dynamo/item_reading.hpp"

namespace sluice::queue::table {

VersionMark VersionMark::of(const dynamo::AttributeValue* stored) {
  if (stored == nullptr) {
    return {};
  }
  return {*stored, dynamo::whole_number(stored).value_or(0)};
}

VersionMark VersionMark::number_of(std::int64_t version) { return {dynamo::AttributeValue::number(version), version}; }

std::int64_t VersionMark::next() const { return number == std::numeric_limits<std::int64_t>::max() ? 1 : number + 1; }

}  // namespace sluice::queue::table
