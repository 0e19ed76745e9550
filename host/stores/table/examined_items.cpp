#include "host/stores/table/examined_items.hpp"

#include <utility>

namespace sluice::queue::table {

void ExaminedItems::note_outside(std::string id, std::string why) {
  ++outside;
  if (first.size() < kNamed) {
    first.push_back({std::move(id), std::move(why)});
  }
}

void ExaminedItems::advise(std::string what, std::string mend) {
  findings.push_back({FindingLevel::advice, std::move(what), std::move(mend)});
}

std::string ExaminedItems::named() const {
  std::string names;
  for (const OutsideItem& item : first) {
    names += (names.empty() ? "'" : ", '") + item.id + "' (" + item.why + ")";
  }
  return names + (outside > first.size() ? ", ..." : "");
}

Result<ExaminedItems> examine_each(dynamo::Client& client, dynamo::ScanRequest scan, std::size_t most_requests,
                                   Deadline deadline,
                                   const std::function<void(ExaminedItems& found, const dynamo::Item& item)>& each) {
  ExaminedItems found;
  found.whole = false;
  for (std::size_t requests = 0; requests < most_requests && !found.whole; ++requests) {
    SLUICE_TRY(page, checked({scan.table, scan.table, {}, {}}, client.scan(scan, deadline)));
    found.read_units += page->capacity.read;
    for (const dynamo::Item& item : page->items) {
      ++found.read;
      each(found, item);
    }
    scan.exclusive_start_key = std::move(page->last_evaluated_key);
    found.whole = scan.exclusive_start_key.empty();
  }
  return found;
}

}  // namespace sluice::queue::table
