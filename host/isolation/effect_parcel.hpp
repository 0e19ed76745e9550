#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "host/queue/effects.hpp"

/// What travels back from a Runner with its outcome.
namespace sluice::isolation {

/// The most that a host takes: what is staged, with the lengths of its many parts.
inline constexpr std::size_t kMostParcelBytes = 4 * queue::kMostEffectBytes;

std::string pack_effects(const queue::Effects& effects);
/// Null for bytes that are none, or more than a handler may stage.
std::shared_ptr<const queue::Effects> unpack_effects(std::string_view bytes);

}  // namespace sluice::isolation
