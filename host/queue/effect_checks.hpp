#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "host/queue/effects.hpp"

/// What every store refuses of effects, and how each names an effect to whoever wrote it.
namespace sluice::queue {

/// Why no store commits these effects: more actions or more bytes than one transaction carries, one item twice, a
/// message without an id or given twice. Nothing: they may be.
std::optional<Error> refused_effects(const Effects& effects);

/// Actions that count towards kMostEffects: the end of the message itself, each message with one for its deduplication
/// id and one for its unique key, each write, the key.
std::size_t effect_actions(const Effects& effects);

/// Bytes that count towards kMostEffectBytes.
std::size_t effect_bytes(const Effects& effects);

/// How a write is called in errors: `write "debit"`, or `write 2` where it has no label; `number` counts from 0.
std::string name_of(const EffectWrite& write, std::size_t number);

}  // namespace sluice::queue
