#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/effect_layout.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::leased {

/// Where a message that is sent now comes to lie.
using PlaceChoice = std::function<Place(const NewMessage& message, WallTime now)>;

/// How this layout holds what a transaction brings to a queue. `place` names queue and table. The references and what
/// `place_for` needs must outlive it.
std::unique_ptr<table::EffectLayout> make_leased_layout(table::StoreParts parts, table::QueueTable place,
                                                        PlaceChoice place_for);

}  // namespace sluice::queue::leased
