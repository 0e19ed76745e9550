#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/keyed_inserter.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::leased {

/// Items by where they lie.
using PlacedItems = std::map<Place, dynamo::Item>;
/// Those that are there; consistent, a hundred at a time.
dynamo::Result<PlacedItems> read_places(dynamo::Client& client, const table::QueueTable& table,
                                        const std::set<Place>& places, Deadline deadline);
/// The messages of these ids, wherever they lie, as ids and aliases say; an entry for each id. Consistent.
dynamo::Result<table::FoundRecords> find_records(dynamo::Client& client, const table::QueueTable& table,
                                                 const std::set<std::string>& ids, Deadline deadline);

/// Where a message that is sent now comes to lie.
using PlaceChoice = std::function<Place(const NewMessage& message, WallTime now)>;

/// How this layout holds messages, and what goes with them. `place` names queue and table; without `place_for` nothing
/// is put in it. The references and what `place_for` needs must outlive it.
std::unique_ptr<table::RecordLayout> make_leased_layout(table::StoreParts parts, table::QueueTable place,
                                                        PlaceChoice place_for);

/// Puts records whose place their id does not say, or that are not to be there twice: each with its alias, 2 write
/// units more, in the place of the one that was read. Its items have `i` where their place is not their id's.
using KeyedDraft = table::KeyedInserter::Draft;
void insert_keyed(const table::StoreParts& parts, const table::RecordLayout& layout, Random& random,
                  std::vector<KeyedDraft> drafts, Deadline deadline);

}  // namespace sluice::queue::leased
