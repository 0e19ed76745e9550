#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "host/queue/effects.hpp"
#include "host/queue/source.hpp"

/// What becomes of a write, once for all stores: how a transaction with effects is refused, and what a record tells of
/// a write whose answer was lost. Pure functions.
namespace sluice::queue::core {

// Effects. A completion and all that its handler staged are one transaction. What is refused of it refuses all.

/// What a transaction is made of, in the order in which its parts are made and in which it counts that one is refused,
/// whatever the store: who has lost the message has no say about anything else, and what a write finds says more than a
/// taken id. A message that is a duplicate is left out, and refuses nothing.
enum class TransactionPart : std::uint8_t { end, key, writes, messages };
inline constexpr std::array kTransactionOrder{TransactionPart::end, TransactionPart::key, TransactionPart::writes,
                                              TransactionPart::messages};

enum class WriteKind : std::uint8_t { sql, item };
/// Why a store cannot send a message, beside what all stores refuse; nothing: it can. Empty: it is not asked.
using MessageCheck = std::function<std::optional<Error>(const EmittedMessage&)>;
/// Why no try could commit these effects, whoever has the message by now: said before anything is written. `takes`: the
/// writes that the store can make.
std::optional<SettleResult> refused_at_once(const Effects& effects, WriteKind takes, const MessageCheck& check = {});

/// What one part of a transaction is called where it is refused, and what becomes of the message then.
struct EffectPart {
  std::string name;
  bool reject = false;
};
/// `write "debit" on table accounts`; `table`: empty where it is not known.
EffectPart part_of(const EffectWrite& write, std::size_t number, std::string_view table);
SettleResult refused(const EffectPart& part, ErrorCode code, const std::string& why);
/// Its condition does not hold: what was found, and what asked for it.
SettleResult refused_condition(const EffectPart& part, std::string_view found, std::string_view asked);
SettleResult refused_message(const EmittedMessage& emitted, const Error& why);

// Unknown outcomes.

enum class WriteFate : std::uint8_t {
  applied,
  refused,  ///< somebody was quicker: it has not taken effect, and never will
  unknown,  ///< it may still arrive
};
/// A conditional write whose answer was lost, or that was refused after an earlier try whose answer was lost.
struct DoubtfulWrite {
  std::string_view nonce;               ///< that it leaves; empty: it removes the record
  std::optional<std::int64_t> version;  ///< on which it is conditional; nothing: on none
  bool refused = false;                 ///< the last try was
};
/// The record as a consistent read after it has it.
struct RecordTrace {
  std::string_view nonce;
  std::int64_t version = 0;
};
/// `record`: nothing where there is none any more.
WriteFate fate_of(const DoubtfulWrite& write, const std::optional<RecordTrace>& record);

}  // namespace sluice::queue::core
