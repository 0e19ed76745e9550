#include "host/queue/send_keys.hpp"

#include "base/text/utf8.hpp"

namespace sluice::queue {

namespace {

constexpr std::size_t kShown = 64;

std::optional<Error> refused_key(const char* what, const std::string& key) {
  if (key.size() > kMostSendKeyBytes) {
    return Error(ErrorCode::invalid, "the " + std::string(what) + " " + abridged_key(key) + " has more than " +
                                         std::to_string(kMostSendKeyBytes) + " bytes; send a hash of it instead");
  }
  if (!is_utf8(key)) {
    return Error(ErrorCode::invalid,
                 "the " + std::string(what) + " is not UTF-8; encode it, as hexadecimal digits for example");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> refused_send_keys(const NewMessage& message) {
  if (auto refused = refused_key("deduplication id", message.dedup_id)) {
    return refused;
  }
  if (!message.dedup_id.empty() &&
      (message.dedup_window < kLeastDedupWindow || message.dedup_window > kLongestDedupWindow)) {
    return Error(ErrorCode::invalid, "a deduplication window lasts between one second and 366 days");
  }
  return refused_key("unique key", message.unique_key);
}

std::string abridged_key(const std::string& key) {
  if (key.size() <= kShown || !is_utf8(key)) {
    return "\"" + (is_utf8(key) ? key : std::string("?")) + "\"";
  }
  return "\"" + std::string(cut_utf8(key, kShown)) + "...\" (" + std::to_string(key.size()) + " bytes)";
}

}  // namespace sluice::queue
