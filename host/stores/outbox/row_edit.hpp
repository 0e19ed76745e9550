#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/stores/outbox/rows.hpp"

namespace sluice::queue::outbox {

/// What shall be true of a row after a mark or an operator's change, and where it takes effect. Each database spells it
/// in its own words. A value.
struct RowEdit {
  enum class Value : std::uint8_t { keep, clear, set };

  bool dead_only = false;                  ///< of a dead letter only
  std::optional<std::uint32_t> only_if{};  ///< only where retry_count (NULL is 0) is still this
  bool erase = false;     ///< the row is deleted, sent or not; everything else is for rows that were not sent
  bool sent = false;      ///< sent_at = now; where rows that were sent are not kept, the row is deleted
  bool gives_up = false;  ///< it is a dead letter afterwards
  Value tries = Value::keep;
  std::uint32_t retries = 0;  ///< retry_count
  bool at_least = false;      ///< a retry_count that is higher stays
  Value due = Value::keep;
  Duration after{};  ///< retry_at: so long from now
  Value reason = Value::keep;
  std::string error{};  ///< last_error, where there is such a column
};

RowEdit edit_of(const RowChange& change, std::uint32_t retry_limit);
RowEdit edit_of(const Mark& mark);

/// Whether it takes effect on a row that was not sent.
bool takes_effect(const RowEdit& edit, std::uint32_t retries, bool dead);
/// retry_count after it; nothing: NULL.
std::optional<std::uint32_t> retries_after(const RowEdit& edit, std::uint32_t retries);
/// Of a mark that was not written. `retries`: the row's retry_count where it is still to be published.
MarkStatus status_of_unwritten(const Mark& mark, std::optional<std::uint32_t> retries);

}  // namespace sluice::queue::outbox
