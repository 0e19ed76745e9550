#pragma once

#include <string_view>

/// Notices among the items of a DynamoMQ table. They have no `queue_type`, so that no index holds them, and none of
/// DynamoMQ's attributes but `id`: a Go program that scans the whole table sees a message without anything in it.
namespace sluice::queue::table {

/// What the ids of notices begin with. No message of ours has such an id.
inline constexpr std::string_view kNoticePrefix = "sluice:fleet/";

/// True for the id of an item that is no message.
constexpr bool is_notice_id(std::string_view id) { return id.substr(0, kNoticePrefix.size()) == kNoticePrefix; }

namespace attribute {
inline constexpr std::string_view kNoticeText = "sluice_notice";         ///< S
inline constexpr std::string_view kNoticeVersion = "sluice_version";     ///< N
inline constexpr std::string_view kNoticePostedAt = "sluice_posted_at";  ///< S
inline constexpr std::string_view kNoticeKeys = "sluice_keys";           ///< SS: of a topic that has many
}  // namespace attribute

}  // namespace sluice::queue::table
