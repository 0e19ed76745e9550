#pragma once

#include <string_view>

namespace sluice::queue::dynamomq {

/// What the ids of notices begin with. They are items of the table without `queue_type`, so that no index holds them.
inline constexpr std::string_view kNoticePrefix = "sluice:fleet/";

/// True for the id of an item that is no message.
constexpr bool is_notice_id(std::string_view id) { return id.substr(0, kNoticePrefix.size()) == kNoticePrefix; }

}  // namespace sluice::queue::dynamomq
