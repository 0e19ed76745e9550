#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/keyed_inserter.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::leased {

class LeasedQueue;

/// Items by where they lie.
using PlacedItems = std::map<Place, dynamo::Item>;
/// Those that are there; consistent, a hundred at a time.
dynamo::Result<PlacedItems> read_places(dynamo::Client& client, const table::QueueTable& table,
                                        const std::set<Place>& places, Deadline deadline);

/// How this layout holds messages, and what goes with them. The queue outlives it.
std::unique_ptr<table::RecordLayout> make_leased_layout(LeasedQueue& queue);

/// Puts records whose place their id does not say, or that are not to be there twice: each with its alias, 2 write
/// units more, in the place of the one that was read. Its items have `i` where their place is not their id's.
using KeyedDraft = table::KeyedInserter::Draft;
void insert_keyed(const table::RecordLayout& layout, std::vector<KeyedDraft> drafts, Deadline deadline);

}  // namespace sluice::queue::leased
